"""Relays that keep a place for guests who are away: from the voice's side, and their own.

A keeper is a relay that the deed names. The voice holds a link to each, shows the deed and who it is, and
from the keeper's yes on sends it every fragment; what the keeper lacks it asks for like anybody else. It is
no guest: the clear part is all that it can read of a sealed place.

The relay decides whose places it keeps, how much of each, and for how long. It verifies the deed and every
fragment, and tests membership by the clear part: so it serves guests as the voice would, and nobody else,
though it has no key. What goes, goes with a record that says why.
"""

from __future__ import annotations

from collections.abc import Callable

from linnet.core.errors import Refused, RemoteError
from linnet.core.ids import AuthorId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.delivery.messages import Data
from linnet.identity.cards import check_dates
from linnet.machine.outbox import Outbox
from linnet.places.channel.retention import retain
from linnet.places.config import KeeperConfig
from linnet.places.deed import Deed, check_deed
from linnet.places.messages import Keep, Kept
from linnet.places.place_setup import DEEDS, Parts
from linnet.trace.records import Kind, Record

PAUSE = 60.0
"""Seconds until a keeper that said no, or nothing, is asked again."""
_KEPT = "place kept"
LOOK = 3600.0
"""Seconds between two looks for what is too old."""


class Keepers:
    """Whom the voice of one place has keep it."""

    def __init__(self, parts: Parts, out: Outbox) -> None:
        self._parts = parts
        self._out = out
        self._purpose = f"keepers {parts.id.hex()[:16]}"
        self._held: dict[PeerId, None] = {}
        self._asked: dict[PeerId, float] = {}
        """When each was asked last."""

    def hold_keepers(self, now: float) -> None:
        """Hold links to all keepers while we are the voice, and ask who has not said yes."""
        parts = self._parts
        wanted = {each.peer: each for each in parts.deed.keepers if each.peer != parts.context.peer}
        if not parts.is_voice:
            wanted = {}
        for peer in [peer for peer in self._held if peer not in wanted]:
            del self._held[peer]
            parts.relay_filter.let_go(peer)
            self._out.release(peer, self._purpose)
        for peer, contact in wanted.items():
            if peer not in self._held:
                self._held[peer] = None
                self._out.hold(peer, contact.hints, self._purpose)
            self._ask(peer, now)

    def put_back(self, seconds: float) -> None:
        """The clock was put back by so many seconds: who was asked was asked as long ago as before."""
        for peer in self._asked:
            self._asked[peer] -= seconds

    def handle_link_up(self, peer: PeerId, now: float) -> None:
        """Ask a keeper whose link we may have waited for."""
        self._asked.pop(peer, None)
        if peer in self._held:
            self._ask(peer, now)

    def handle_link_down(self, peer: PeerId) -> None:
        """Forget that a keeper was asked: it is asked again when its link is up."""
        self._asked.pop(peer, None)
        self._parts.relay_filter.let_go(peer)

    def handle_answer(self, peer: PeerId, kept: Kept, now: float) -> None:
        """Note a keeper's yes or no. With a yes it is sent the newest fragment: so it knows what it lacks."""
        parts = self._parts
        if peer not in self._asked:
            note = "a keeper's answer that nobody waits for"
            self._out.record(Record(Kind.REJECTED, parts.id, peer=peer, reason=Reason.SURPLUS, note=note))
            return
        if kept.reason is not None:
            note = f"a keeper says no: {kept.reason}"
            self._out.record(Record(Kind.DROPPED, parts.id, peer=peer, reason=kept.reason, note=note))
            return
        parts.relay_filter.keep(peer)
        newest = parts.fragments.get(parts.fragments.standing.fragment)
        unit = None if newest is None else parts.fragments.unit(newest)
        if unit is not None:
            card = parts.context.cards.find(unit.author, unit.device)
            self._out.committed.send(peer, Data(unit, 1, 0, int(now * 1_000_000), card))

    def _ask(self, peer: PeerId, now: float) -> None:
        parts = self._parts
        late = now >= self._asked.get(peer, now - PAUSE) + PAUSE
        if peer not in parts.context.links or parts.relay_filter.keeps(peer) or not late:
            return
        self._asked[peer] = now
        self._out.send(peer, Keep(parts.deed, parts.context.card))


class KeptPlaces:
    """The places that this node keeps, if it is a relay."""

    def __init__(self, context: Context, config: KeeperConfig | None, out: Outbox) -> None:
        self._context = context
        self._config = config
        self._out = out
        self._cells = context.store.cells
        self._looked: dict[TopicId, float] = {}

    @property
    def places(self) -> tuple[TopicId, ...]:
        """All that are kept."""
        return tuple(TopicId(key) for key, _ in self._cells.scan(_KEPT))

    def keeps(self, place: TopicId) -> bool:
        """Whether this node keeps a place."""
        return self._cells.get(_KEPT, place) is not None

    def handle_keep(
        self,
        peer: PeerId,
        keep: Keep,
        known: Parts | None,
        opened: Callable[[Deed], Parts],
        now: float,
    ) -> None:
        """Keep a place for a peer that asks us to, which may be open here already; or say why not."""
        place = keep.deed.place
        try:
            taken = Reason.IN_USE if known is not None and not known.keeps else None
            reason = taken or self.take(peer, keep, now)
            if reason is None:
                parts = known or opened(keep.deed)
                parts.renew(keep.deed)
                parts.keep_deed(parts.deed)
                parts.tree.connect_up(peer)
                parts.fragment_repair.connect(peer, now)
        except (RemoteError, Refused) as error:
            reason = error.reason
        note = "a keeper of it from now on" if reason is None else "no keeper of it"
        kind = Kind.CONTROL if reason is None else Kind.REJECTED
        self._out.record(Record(kind, place, peer=peer, reason=reason, note=note))
        self._out.committed.send(peer, Kept(place, reason))

    def is_over(self, parts: Parts) -> bool:
        """Whether a place that was kept has a deed that names us no more."""
        return parts.keeps and not _names(parts.deed, self._context.peer)

    def take(self, peer: PeerId, keep: Keep, now: float) -> Reason | None:
        """Keep a place from now on, as this peer asks; or why not. `RemoteError` if it shows something false.

        The deed must name us, and whoever asks must be one of those who may speak there.
        """
        deed, card = keep.deed, keep.card
        check_deed(deed)
        if card is None or card.device_key != peer:
            raise RemoteError(Reason.NOT_ALLOWED, "the card is of another device than the one on this link")
        check_dates(card, now)
        self._context.card_check(card)
        config = self._config
        if config is None:
            return Reason.UNSUPPORTED
        if not _names(deed, self._context.peer) or deed.rank(card.person) is None:
            return Reason.NOT_ALLOWED
        if config.allow is not None and not self._is_allowed(deed, card.person, config.allow):
            return Reason.NOT_ALLOWED
        if not self.keeps(deed.place) and self._is_full(config):
            return Reason.QUOTA
        self._cells.put(_KEPT, deed.place, b"")
        return None

    def _is_allowed(self, deed: Deed, person: AuthorId, allow: tuple[AuthorId, ...]) -> bool:
        """Whether somebody may have a place kept here: as allowed themselves, or as co-host of one who is and
        asked first. Anybody can sign a deed that names somebody else as its host."""
        return person in allow or (deed.host in allow and self.keeps(deed.place))

    def trim_place(self, parts: Parts, now: float) -> None:
        """Let go what is past the bytes of one place, and now and then what is too old."""
        config = self._config
        if config is None:
            return
        before = None
        if abs(now - self._looked.get(parts.id, now - LOOK)) >= LOOK:  # a clock may be put back
            self._looked[parts.id] = now
            before = now - config.lifetime
        log = self._context.store.log
        most = config.place_bytes
        for evicted in retain(parts.fragments, parts.membership, log, most, before=before, state=False):
            self._out.record(evicted)

    def drop_place(self, parts: Parts, reason: Reason) -> None:
        """Keep a place no more: nothing of it stays."""
        self._cells.delete(_KEPT, parts.id)
        self._cells.delete(DEEDS, parts.id)
        log = self._context.store.log
        for row in map(parts.fragments.get, range(parts.fragments.standing.fragment + 1)):
            if row is not None:
                parts.fragments.evicted(row)
        while evicted := log.evict(parts.id, None, 0, 256):
            for each in evicted:
                entry = (parts.id, each.head, each.device, each.first)
                self._out.record(Record(Kind.EVICTED, *entry, reason=reason))

    def _is_full(self, config: KeeperConfig) -> bool:
        places = self.places
        used = sum(self._context.store.log.kept(place).bytes for place in places)
        return len(places) >= config.max_places or used >= config.total_bytes


def _names(deed: Deed, peer: PeerId) -> bool:
    """Whether a deed names this device as a keeper."""
    return any(each.peer == peer for each in deed.keepers)
