"""The peers that a node knows and how it finds others: the random sample, similar peers, and fingers."""

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
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.gossip.descriptor import DescriptorCheck, OwnDescriptor, OwnProfile, believing
from linnet.overlay.gossip.interest_clustering import InterestClustering
from linnet.overlay.gossip.known_peers import KnownPeers
from linnet.overlay.gossip.messages import Alike, AskAlike, Descriptor, Pull, Pulled
from linnet.overlay.gossip.peer_sampling import PeerSampling
from linnet.overlay.gossip.privacy_budget import PrivacyBudget
from linnet.overlay.gossip.requests import GossipRequests, Request
from linnet.overlay.gossip.trust import Trust
from linnet.trace.records import Kind, Record

_SPACE = "trackerless"
_PEERS = b"peers"
_KEY = b"key"
_REMEMBERED = 64
"""Peers that are saved, to begin with after a restart."""
_REMEMBER_ROUNDS = 30
_RETURN_ROUNDS = 30
"""Rounds after which one bootstrap peer is asked once more: after a long partition, all peers that we know
are on our side of it."""
_RETURNED = 8
"""Of the saved peers, those that are asked at once where their descriptors have expired."""
_ASKS = 16
"""Questions of one peer for similar peers that are answered in a round: a new node hurries."""
_KEY_BYTES = 32
_HINTS = 8

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[Descriptor, ...]).decode


class PeerGossip:
    """Runs the gossip of a node about its peers."""

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
        only_local: bool = False,
    ) -> None:
        """`only_local`: with nobody but devices on local networks anything is spoken of."""
        self.out = out
        self._only_local = only_local
        self.ours = PeerId(key.public)
        self.config = config
        self.rng = rng
        self.links = links
        self.check = check = believing(check)
        self.key = _kept_key(cells, entropy)
        """A secret, for choices that no other node should foresee, and for noise that must stay the same."""
        self.cells = cells
        """The part of the state that survives a restart."""
        self.known = KnownPeers(only_local=only_local)
        self.trust = Trust(cells, config)
        self.budget = PrivacyBudget(cells)
        self.sampling = PeerSampling(
            self.ours, config, self.known, self.trust, rng, self.key, check, lambda: self.own.listens
        )
        self.clustering = InterestClustering(self.ours, config, self.known, self.trust, rng, check)
        self.own = OwnDescriptor(key, config, cells, entropy, listens)
        self.requests = GossipRequests(config.request_timeout, links, out)
        self._bootstrap: dict[PeerId, Contact] = {}
        self.local: dict[PeerId, Contact] = {}
        """Devices that were met on a local network."""
        self.alone_since: float | None = None
        """Since when the sample is empty, as rounds see it."""
        self._tries = 0
        """How many peers were tried because the sample was empty."""
        self._number = 0
        self._rounds = 0
        self._asked: dict[PeerId, int] = {}
        """How often each peer asked for similar peers in this round."""

    def own_profile(self, now: float) -> OwnProfile:
        """Return our current profile; a release of a filter is entered in the privacy budget."""
        shown = self.own.make_profile(now)
        if shown.released:
            self.budget.enter_release(shown.descriptor.epoch, shown.descriptor.epsilon_milli / 1000, now)
        return shown

    def hints_of(self, peer: PeerId) -> tuple[str, ...]:
        """Return the addresses at which a peer may be dialled."""
        known = self.known.descriptor_of(peer)
        far = known.hints if known is not None else ()
        contact = self.local.get(peer) or (None if far else self._bootstrap.get(peer))
        return far if contact is None else tuple(dict.fromkeys((*contact.hints, *far)))[:_HINTS]

    def descriptor_for(self, peer: PeerId, now: float) -> Descriptor:
        """Return our descriptor for a peer: on a local network it shows no filter."""
        shown = self.own_profile(now)
        return shown.plain if peer in self.local else shown.descriptor

    # Local networks.

    def add_local(self, contact: Contact) -> None:
        """Note that a device shares a local network with us."""
        named = self._bootstrap.get(contact.peer)
        self.known.note_met(contact.peer, named is not None and bool(named.hints))
        self.local[contact.peer] = contact

    def remove_local(self, peer: PeerId, is_denied: bool) -> bool:
        """Note that a device left our local networks; `is_denied`: no topic is allowed where it was met.

        Returns whether to part from it, because local networks alone made it known.
        """
        self.local.pop(peer, None)
        return self._only_local or (is_denied and self.known.is_near(peer))

    def is_apart(self, peer: PeerId) -> bool:
        """Return whether to stay silent to a peer: a local network made it known, and it is not there now."""
        return peer not in self.local and (self._only_local or self.known.is_parted(peer))

    def part_from(self, peer: PeerId) -> list[Request]:
        """Forget a device; returns the requests that it will not answer."""
        self.sampling.forget_peer(peer)
        self.clustering.drop_peer(peer)
        self.known.part_from(peer)
        self._bootstrap.pop(peer, None)
        return self.requests.handle_link_down(peer)

    def begin(self, bootstrap: Iterable[Contact], now: float) -> None:
        """Ask the peers that were known before the restart, and these."""
        kept = self.cells.get(_SPACE, _PEERS)
        ended: list[Contact] = []
        for descriptor in () if kept is None else _decode(kept):
            try:
                self._record(self.sampling.add_descriptor(descriptor, now))
            except RemoteError:
                # Its descriptor expired while we were away; it may still be at its address.
                ended.append(Contact(descriptor.peer, descriptor.hints))
        self.ask_contacts((*bootstrap, *ended[:_RETURNED]), now)

    def ask_contacts(self, contacts: Iterable[Contact], now: float) -> None:
        """Ask nodes of which only an address is known."""
        for contact in contacts:
            if contact.peer != self.ours:
                self._bootstrap[contact.peer] = contact
                if contact.hints:
                    self.known.note_address(contact.peer)
                self.pull_from(contact.peer, now)

    def pull_from(self, peer: PeerId, now: float) -> None:
        """Ask a peer for some of its sample."""
        self.requests.ask_peer(
            peer, self.hints_of(peer), Pull(self._next_number(), self.descriptor_for(peer, now))
        )

    def begin_round(self, now: float) -> None:
        """Pull from a peer of the sample, and ask a similar one."""
        self._rounds += 1
        self._asked.clear()
        if self._rounds == self.config.hurried or self._rounds % _REMEMBER_ROUNDS == 0:
            self.save_peers(now)
        self._record(self.sampling.begin_round(now))
        shown = self.own_profile(now)
        target = self.sampling.choose_target(now)
        if target is not None:
            self.pull_from(target, now)
        self._note_sample(now)
        if target is None:
            self._try_known(now)
        elif self._bootstrap and self._rounds % _RETURN_ROUNDS == 0:
            self.pull_from(self.rng.choice(list(self._bootstrap)), now)
        self.clustering.similarity.set_interests(shown.interests)
        self.clustering.refresh_fingers(self.sampling.view, now)
        alike = self.clustering.choose_target(self.sampling.view)
        if alike is not None:
            question = AskAlike(self._next_number(), self.descriptor_for(alike, now))
            self.requests.ask_peer(alike, self.hints_of(alike), question)

    def _note_sample(self, now: float) -> None:
        if self.sampling.view:
            self.alone_since = None
        elif self.alone_since is None:
            self.alone_since = now

    def _try_known(self, now: float) -> None:
        """Ask the next of all peers with a known address: each may be up again, and dialling backs off."""
        tried = [
            peer
            for peer in dict.fromkeys((*self._bootstrap, *self.known))
            if self.hints_of(peer) and not self.trust.is_banned(peer, now)
        ]
        if tried:
            self.pull_from(tried[self._tries % len(tried)], now)
            self._tries += 1

    def handle_link_up(self, peer: PeerId, now: float) -> None:
        """Send what waits for this link, and end the rest of a known peer."""
        self._record(self.sampling.end_rest(peer, now))
        self.requests.handle_link_up(peer)

    def answer_pull(self, peer: PeerId, message: Pull, now: float) -> None:
        """Answer a peer that asks for some of our sample."""
        pulled, records = self.sampling.answer_pull(peer, message, self.descriptor_for(peer, now), now)
        self.out.send(peer, pulled)
        self._record(records)

    def answer_ask_alike(
        self, peer: PeerId, message: AskAlike, members: Sequence[PeerId], now: float
    ) -> None:
        """Answer a peer that asks for similar peers."""
        own = self.descriptor_for(peer, now)
        if message.own.peer != peer:
            raise RemoteError(Reason.NOT_ALLOWED, "a node may ask for none but itself")
        self._asked[peer] = self._asked.get(peer, 0) + 1
        if self._asked[peer] > _ASKS:
            raise RemoteError(Reason.TOO_MANY, "asks for like peers more often than rounds pass")
        self.check(message.own, now)
        alike = self.clustering.choose_alike(message.own, self.sampling.view, members, own, now)
        self.out.send(peer, Alike(message.number, alike))

    def handle_answer(self, peer: PeerId, message: Pulled | Alike, now: float) -> None:
        """Take in the peers that an answer names."""
        kind: type[Pull] | type[AskAlike] = Pull if isinstance(message, Pulled) else AskAlike
        if not self.requests.is_asked(peer, kind):
            note = f"{type(message).__name__}: an answer that nobody waits for"
            self.out.record(Record(Kind.REJECTED, peer=peer, reason=Reason.STALE, note=note))
            return
        self.requests.handle_answer(peer, kind)
        if isinstance(message, Pulled):
            self._record(self.sampling.handle_pulled(peer, message.nodes, now))
            return
        self.clustering.similarity.set_interests(self.own_profile(now).interests)
        self._record(self.clustering.handle_answer(peer, message.nodes, self.sampling.view, now))

    def handle_silence(self, peer: PeerId, message: Pull | AskAlike, now: float) -> None:
        """Note that a peer did not answer."""
        self.sampling.note_failure(peer, now)
        if isinstance(message, AskAlike):
            self.clustering.note_failure(peer)

    def note_offence(self, peer: PeerId, now: float) -> None:
        """Ban a peer that did what no honest one does."""
        self.trust.note_offence(peer, now)
        self.sampling.drop_peer(peer)
        self.clustering.drop_peer(peer)

    def save_peers(self, now: float) -> None:
        """Save the peers to begin with after a restart; devices of local networks are met anew."""
        peers = dict.fromkeys((*self.sampling.view, *self.clustering.view, *self.known))
        known = [self.known.descriptor_of(peer) for peer in peers if not self.known.is_near(peer)]
        kept = [each for each in known if each is not None and each.hints and each.expires > now]
        self.cells.put(_SPACE, _PEERS, _encode(tuple(kept[:_REMEMBERED])))
        self.budget.flush()

    def _record(self, records: Iterable[Record]) -> None:
        for record in records:
            self.out.record(record)

    def _next_number(self) -> int:
        self._number += 1
        return self._number


def _kept_key(cells: Cells, entropy: Entropy) -> bytes:
    """Return the saved key or make one: with new decoys and noise after a restart, both could be averaged
    out."""
    kept = cells.get(_SPACE, _KEY)
    if kept is None:
        kept = entropy(_KEY_BYTES)
        cells.put(_SPACE, _KEY, kept)
    return kept
