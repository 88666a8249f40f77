"""Whom a node knows, and how it comes to know others: the sample of all, those who are alike, and fingers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random

import msgspec

from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, PeerId
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.identity.keys import SigningKey
from linnet.machine.outbox import Outbox
from linnet.overlay.trackerless.acquaintances import Acquaintances
from linnet.overlay.trackerless.clustering import Clustering
from linnet.overlay.trackerless.config import TrackerlessConfig
from linnet.overlay.trackerless.descriptor import DescriptorCheck
from linnet.overlay.trackerless.errands import Errands
from linnet.overlay.trackerless.messages import Alike, AskAlike, Descriptor, Pull, Pulled
from linnet.overlay.trackerless.own import Own, Shown
from linnet.overlay.trackerless.plausible import believing
from linnet.overlay.trackerless.privacy import Budget
from linnet.overlay.trackerless.sampling import Sampling
from linnet.overlay.trackerless.trust import Trust
from linnet.trace.records import Kind, Record

_SPACE = "trackerless"
_PEERS = b"peers"
_KEY = b"key"
_REMEMBERED = 64
"""Peers that are written down, to begin with after a restart."""
_REMEMBER_ROUNDS = 30
_RETURN_ROUNDS = 30
"""Rounds after which one of those whom we began with is asked once more: if the network was cut for long,
all whom we know are on our side of the cut."""
_RETURNED = 8
"""Of them, those that are turned to at once where all that was known has ended."""
_ASKS = 16
"""Questions of one peer for like peers that are answered in a round: a node that is new hurries."""
_KEY_BYTES = 32
_HINTS = 8

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[Descriptor, ...]).decode


class Gossip:
    """The peers of a node."""

    def __init__(
        self,
        key: SigningKey,
        config: TrackerlessConfig,
        cells: Cells,
        rng: Random,
        entropy: Entropy,
        listens: tuple[str, ...],
        links: Mapping[PeerId, None],
        check: DescriptorCheck,
        out: Outbox,
    ) -> None:
        self.out = out
        self.ours = PeerId(key.public)
        self.config = config
        self.rng = rng
        self.links = links
        self.check = check = believing(check)
        self.key = _kept_key(cells, entropy)
        """Secret, for choices that nobody else should foresee, and for noise that must stay the same."""
        self.cells = cells
        """What survives a restart."""
        self.acquaintances = Acquaintances()
        self.trust = Trust(cells, config)
        self.budget = Budget(cells)
        self.sampling = Sampling(
            self.ours, config, self.acquaintances, self.trust, rng, self.key, check, lambda: self.own.listens
        )
        self.clustering = Clustering(self.ours, config, self.acquaintances, self.trust, rng, check)
        self.own = Own(key, config, cells, entropy, listens)
        self.errands = Errands(config.request_timeout, links, out)
        self._bootstrap: dict[PeerId, Contact] = {}
        self.local: dict[PeerId, Contact] = {}
        """Devices that were met on a local network."""
        self._number = 0
        self._rounds = 0
        self._asked: dict[PeerId, int] = {}
        """How often each asked for those who are alike, in this round."""

    def shown(self, now: float) -> Shown:
        """What we say of ourselves now; a release of a filter is entered in the budget."""
        shown = self.own.shown(now)
        if shown.released:
            self.budget.released(shown.descriptor.epoch, shown.descriptor.epsilon_milli / 1000, now)
        return shown

    def hints(self, peer: PeerId) -> tuple[str, ...]:
        """Where a peer may be dialled."""
        known = self.acquaintances.descriptor(peer)
        far = known.hints if known is not None else ()
        contact = self.local.get(peer) or (None if far else self._bootstrap.get(peer))
        return far if contact is None else tuple(dict.fromkeys((*contact.hints, *far)))[:_HINTS]

    def face(self, peer: PeerId, now: float) -> Descriptor:
        """What we say of ourselves to a peer: on a local network no filter is shown."""
        shown = self.shown(now)
        return shown.plain if peer in self.local else shown.descriptor

    def begin(self, bootstrap: Iterable[Contact], now: float) -> None:
        """Turn to whoever was known before the restart, and to these."""
        kept = self.cells.get(_SPACE, _PEERS)
        ended: list[Contact] = []
        for descriptor in () if kept is None else _decode(kept):
            try:
                self._record(self.sampling.meet(descriptor, now))
            except RemoteError:
                # What it said ended while we were away; it may still be where it was.
                ended.append(Contact(descriptor.peer, descriptor.hints))
        self.approach((*bootstrap, *ended[:_RETURNED]), now)

    def approach(self, contacts: Iterable[Contact], now: float) -> None:
        """Ask nodes of which nothing is known but an address."""
        for contact in contacts:
            if contact.peer != self.ours:
                self._bootstrap[contact.peer] = contact
                self.pull(contact.peer, now)

    def pull(self, peer: PeerId, now: float) -> None:
        """Ask a peer for some of its sample."""
        self.errands.ask(peer, self.hints(peer), Pull(self._next(), self.face(peer, now)))

    def round(self, now: float) -> None:
        """Pull from one of the sample, and ask one who is alike."""
        self._rounds += 1
        self._asked.clear()
        if self._rounds == self.config.hurried or self._rounds % _REMEMBER_ROUNDS == 0:
            self.remember(now)
        self._record(self.sampling.round(now))
        shown = self.shown(now)
        target = self.sampling.target(now)
        if target is not None:
            self.pull(target, now)
        if self._bootstrap and (target is None or self._rounds % _RETURN_ROUNDS == 0):
            self.pull(self.rng.choice(list(self._bootstrap)), now)
        self.clustering.likeness.become(shown.interests)
        self.clustering.refresh_fingers(self.sampling.view, now)
        alike = self.clustering.target(self.sampling.view)
        if alike is not None:
            question = AskAlike(self._next(), self.face(alike, now))
            self.errands.ask(alike, self.hints(alike), question)

    def answer_pull(self, peer: PeerId, message: Pull, now: float) -> None:
        """A peer wants some of our sample."""
        pulled, records = self.sampling.asked(peer, message, self.face(peer, now), now)
        self.out.send(peer, pulled)
        self._record(records)

    def answer_ask_alike(
        self, peer: PeerId, message: AskAlike, members: Sequence[PeerId], now: float
    ) -> None:
        """A peer wants to know others that are like it."""
        own = self.face(peer, now)
        if message.own.peer != peer:
            raise RemoteError(Reason.NOT_ALLOWED, "a node may ask for none but itself")
        self._asked[peer] = self._asked.get(peer, 0) + 1
        if self._asked[peer] > _ASKS:
            raise RemoteError(Reason.TOO_MANY, "asks for like peers more often than rounds pass")
        self.check(message.own, now)
        alike = self.clustering.answer(message.own, self.sampling.view, members, own, now)
        self.out.send(peer, Alike(message.number, alike))

    def learn(self, peer: PeerId, message: Pulled | Alike, now: float) -> None:
        """A peer names others."""
        kind: type[Pull] | type[AskAlike] = Pull if isinstance(message, Pulled) else AskAlike
        if not self.errands.is_asked(peer, kind):
            note = f"{type(message).__name__}: an answer that nobody waits for"
            self.out.record(Record(Kind.REJECTED, peer=peer, reason=Reason.STALE, note=note))
            return
        self.errands.handle_answer(peer, kind)
        if isinstance(message, Pulled):
            self._record(self.sampling.pulled(peer, message.nodes, now))
            return
        self.clustering.likeness.become(self.shown(now).interests)
        self._record(self.clustering.learned(peer, message.nodes, self.sampling.view, now))

    def handle_silence(self, peer: PeerId, message: Pull | AskAlike, now: float) -> None:
        """A peer did not answer."""
        self.sampling.failed(peer, now)
        if isinstance(message, AskAlike):
            self.clustering.failed(peer)

    def note_offence(self, peer: PeerId, now: float) -> None:
        """A peer did what no honest one does."""
        self.trust.offence(peer, now)
        self.sampling.drop(peer)
        self.clustering.drop(peer)

    def remember(self, now: float) -> None:
        """Write down whom to begin with after a restart."""
        peers = dict.fromkeys((*self.sampling.view, *self.clustering.view))
        known = [self.acquaintances.descriptor(peer) for peer in peers]
        kept = [each for each in known if each is not None and each.hints and each.expires > now]
        self.cells.put(_SPACE, _PEERS, _encode(tuple(kept[:_REMEMBERED])))
        self.budget.flush()

    def _record(self, records: Iterable[Record]) -> None:
        for record in records:
            self.out.record(record)

    def _next(self) -> int:
        self._number += 1
        return self._number


def _kept_key(cells: Cells, entropy: Entropy) -> bytes:
    """The same after a restart: with other decoys and other noise, what they hide could be averaged out."""
    kept = cells.get(_SPACE, _KEY)
    if kept is None:
        kept = entropy(_KEY_BYTES)
        cells.put(_SPACE, _KEY, kept)
    return kept
