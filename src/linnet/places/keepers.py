"""Relays that keep a place for guests who are away: at the voice, and at the keeper.

A keeper is a relay that the deed names. The voice holds a link to each, shows the deed and its card, and once
the keeper has agreed sends it every fragment; the keeper asks for what it lacks like any other node. It is no
guest: of a sealed place it can read only the clear part.

The relay decides whose places it keeps, how much of each, and for how long. It verifies the deed and every
fragment, and tests membership by the clear part: so it serves guests as the voice would, and nobody else,
though it has no key. Each eviction leaves a record with the reason. Changes of membership that are in force
are never evicted, nor the last fragment of each device, on which its chain goes on. Keys are evicted last,
when nothing else is left that may go: a guest that lacks a key can ask the voice for it.
"""

from __future__ import annotations

from collections.abc import Callable

from linnet.core.errors import Refused, RemoteError
from linnet.core.ids import AuthorId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Entry, EventLog
from linnet.delivery.context import Context
from linnet.delivery.messages import Data
from linnet.event.signing import decode_unit, recall_unit
from linnet.identity.cards import check_dates
from linnet.machine.outbox import Outbox
from linnet.places.channel.fragment_store import Fragments, Row
from linnet.places.channel.membership import Membership
from linnet.places.config import KeeperConfig
from linnet.places.deed import Deed, check_deed
from linnet.places.messages import Keep, Kept
from linnet.places.multicast.fragmentation import Flag, Head, head_of
from linnet.places.place_setup import DEEDS, Parts
from linnet.trace.records import Kind, Record

PAUSE = 60.0
"""Seconds until a keeper that refused, or did not answer, is asked again."""
_KEPT = "place kept"
LOOK = 3600.0
"""Seconds between two searches for fragments that are too old."""
EVICT_UNITS = 256
"""The fragments that one search removes or moves: a bound on the time it takes."""


class Keepers:
    """Has the keepers of one place keep it, while we are its voice."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._purpose = f"keepers {parts.id.hex()[:16]}"
        self._held: dict[PeerId, None] = {}
        self._asked: dict[PeerId, float] = {}
        """When each keeper was last asked."""

    def hold_keepers(self, now: float) -> None:
        """Hold links to all keepers while we are the voice, and ask those that have not agreed."""
        parts = self._parts
        wanted = {each.peer: each for each in parts.deed.keepers if each.peer != parts.context.peer}
        if not parts.is_voice:
            wanted = {}
        for peer in [peer for peer in self._held if peer not in wanted]:
            del self._held[peer]
            parts.relay_filter.let_go(peer)
            self._parts.out.release(peer, self._purpose)
        for peer, contact in wanted.items():
            if peer not in self._held:
                self._held[peer] = None
                self._parts.out.hold(peer, contact.hints, self._purpose)
            self._ask(peer, now)

    def put_back(self, seconds: float) -> None:
        """Shift the stored times by the seconds that the clock went back, so that nothing is due later."""
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
        """Note a keeper's answer. If it agrees, send it the newest fragment, which shows what it lacks."""
        parts = self._parts
        if peer not in self._asked:
            parts.record(Kind.REJECTED, peer, Reason.SURPLUS, "a keeper's answer that nobody waits for")
            return
        if kept.reason is not None:
            parts.record(Kind.DROPPED, peer, kept.reason, f"a keeper says no: {kept.reason}")
            return
        parts.relay_filter.keep(peer)
        newest = parts.fragments.get(parts.fragments.standing.fragment)
        unit = None if newest is None else parts.fragments.unit(newest)
        if unit is not None:
            card = parts.context.cards.find(unit.author, unit.device)
            self._parts.out.committed.send(peer, Data(unit, 1, 0, int(now * 1_000_000), card))

    def _ask(self, peer: PeerId, now: float) -> None:
        parts = self._parts
        late = now >= self._asked.get(peer, now - PAUSE) + PAUSE
        if peer not in parts.context.links or parts.relay_filter.keeps(peer) or not late:
            return
        self._asked[peer] = now
        self._parts.out.send(peer, Keep(parts.deed, parts.context.card))


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
        """The places that this node keeps."""
        return tuple(TopicId(key) for key, _ in self._cells.scan(_KEPT))

    def keeps(self, place: TopicId) -> bool:
        """Return whether this node keeps a place."""
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
        """Return whether the deed of a place that we keep no longer names us."""
        return parts.keeps and not _names(parts.deed, self._context.peer)

    def take(self, peer: PeerId, keep: Keep, now: float) -> Reason | None:
        """Keep a place for this peer, or return why not; `RemoteError` if its proof is false.

        The deed must name us, and the asking person must be one of those who may speak there.
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
        """Return whether a person may have a place kept here: allowed themselves, or co-host of an allowed
        host that asked first. Anybody can sign a deed that names another person as its host."""
        return person in allow or (deed.host in allow and self.keeps(deed.place))

    def trim_place(self, parts: Parts, now: float) -> None:
        """Evict fragments past the bytes of one place, and from time to time those that are too old."""
        config = self._config
        if config is None:
            return
        before = None
        if abs(now - self._looked.get(parts.id, now - LOOK)) >= LOOK:  # a clock may be put back
            self._looked[parts.id] = now
            before = now - config.lifetime
        log = self._context.store.log
        most = config.place_bytes
        for evicted in retain(parts.fragments, parts.membership, log, most, before=before):
            self._out.record(evicted)

    def drop_place(self, parts: Parts, reason: Reason) -> None:
        """Stop keeping a place, and delete all of it."""
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
    """Return whether a deed names this device as a keeper."""
    return any(each.peer == peer for each in deed.keepers)


def retain(
    fragments: Fragments,
    membership: Membership,
    log: EventLog,
    max_bytes: int,
    most: int = EVICT_UNITS,
    before: float | None = None,
) -> list[Record]:
    """Evict the oldest fragments of a place until its bytes fit, or all that is left must stay.

    With `before`, evict those stored earlier too, though there is room for them. Changes of state may go: a
    keeper cannot tell which of them still count.

    The log forgets from its beginning only: what must stay is appended again, as it was.
    """
    place = fragments.place
    tips = {head.head: None for head in log.heads(place)}
    moved: dict[bytes, int] = {}
    """How often each fragment that must stay was met."""
    gone: list[Record] = []
    for _ in range(most):
        evicted = log.evict(place, before, max_bytes, 1)
        if not evicted:
            break
        entry = evicted[0]
        head = head_of(recall_unit(decode_unit(entry.raw)).events[0])
        row = fragments.get(head.fragment)
        row = row if row is not None and row.event == entry.head else None
        times = moved.get(entry.head, 0)
        # All fragments were met once, or as many as one search may cost: it is keys that are too many.
        full = log.kept(place).bytes + len(entry.raw) > max_bytes and (times > 0 or 2 * len(moved) >= most)
        must = row is not None and _must_stay(membership, head, keys=not full)
        if must or entry.head in tips:
            position = log.append(entry)
            if row is not None and position is not None:
                fragments.moved(row, position)
            if times > 1:
                break
            moved[entry.head] = times + 1
            continue
        _forget_row(fragments, row, entry)
        is_old = before is not None and entry.stored_at < before
        gone.append(_record(entry, Reason.RETENTION if is_old else Reason.QUOTA))
    return gone


def _must_stay(membership: Membership, head: Head, keys: bool) -> bool:
    if keys and head.flags & Flag.KEYS:
        return True
    return head.change is not None and membership.matters(head.change.nym, head.message)


def _forget_row(fragments: Fragments, row: Row | None, entry: Entry) -> None:
    if row is not None:
        fragments.evicted(row)
        return
    for orphan in fragments.orphans():
        if orphan.event == entry.head:
            fragments.forget_orphan(orphan)


def _record(entry: Entry, reason: Reason) -> Record:
    return Record(
        Kind.EVICTED,
        entry.topic,
        entry.head,
        entry.device,
        entry.first,
        bytes=len(entry.raw),
        reason=reason,
    )
