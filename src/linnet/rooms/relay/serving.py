"""What a relay answers to those who may ask: what they missed, single events, the control DAG."""

from __future__ import annotations

from typing import NamedTuple

from linnet.core.ids import Contact, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.causal_messages import Given, Want
from linnet.event.event import Unverified
from linnet.rooms.access.control_dag import ControlDag
from linnet.rooms.messages import (
    AskControl,
    ControlPage,
    RelayCursor,
    Resync,
    ResyncPage,
    RoomReceipt,
    Tombstone,
)
from linnet.rooms.relay.access_control import HEADS, Caller
from linnet.rooms.relay.event_cache import Cache
from linnet.rooms.relay.paging import Pages
from linnet.rooms.relay.receipts import KeptReceipts

_TOMBSTONES = 1024
_ASKERS = 4096
"""Askers of whom it is remembered what they were told beside events; the oldest is forgotten."""


class _Told:
    """How far an asker was told what is not in the order of the log."""

    __slots__ = ("receipts", "tombstones")

    def __init__(self, tombstones: int) -> None:
        self.tombstones = tombstones
        self.receipts = 0


class _Beside(NamedTuple):
    """What a page tells beside events."""

    tombstones: tuple[Tombstone, ...]
    receipts: tuple[RoomReceipt, ...]
    rest: bool
    """Whether there is more of it."""


_NOTHING = _Beside((), (), False)


class Serving:
    """The answers about one room. Who may have them was decided before."""

    def __init__(
        self,
        room: TopicId,
        epoch: bytes,
        cache: Cache,
        dag: ControlDag,
        pages: Pages,
        receipts: KeptReceipts,
    ) -> None:
        self._room = room
        self._epoch = epoch
        self._cache = cache
        self._dag = dag
        self._pages = pages
        self._receipts = receipts
        self._told: dict[PeerId, _Told] = {}
        self._anew: dict[PeerId, int] = {}
        """How far those are who read from the oldest, and are still before something that was let go."""

    def cursor(self, position: int) -> RelayCursor:
        """A place in what is kept here."""
        return RelayCursor(self._epoch, position)

    @property
    def oldest(self) -> RelayCursor:
        """Where to begin to get all that is kept: before the create event, which is never evicted."""
        return self.cursor(self._cache.first - 1)

    def reached(self, cursor: RelayCursor | None) -> int:
        """The position up to which somebody with this cursor has what is kept here."""
        if cursor is None or cursor.epoch != self._epoch or cursor.position > self._cache.end:
            return 0
        return cursor.position

    def resync(self, caller: Caller, request: Resync, since: float) -> ResyncPage:
        """The page past a cursor. A cursor that cannot be gone on from says where to begin instead."""
        asked = request.cursor
        if asked is None:
            asked = self.oldest
        elif not self._is_good(asked) and self._anew.get(caller.peer) != asked.position:
            return self._page(request.request, (), None, False, Reason.CURSOR_EXPIRED)
        limit = min(request.limit, self._pages.events)
        placed = self._cache.read(asked.position, since, limit + 1)
        page = self._pages.of(placed, limit)
        end = max(asked.position, self._cache.end)
        at = end if page.whole else page.last
        self._goes_on(caller.peer, at)
        if not caller.linked:
            # Nobody would tell us that it never arrived: it is told again with the next request.
            beside = self._tell(caller, _Told(self._cache.tombstones.first(asked.position)))
            return self._page(request.request, page.units, at, not page.whole, None, beside)
        if request.cursor is None or caller.peer not in self._told:
            self._begin(caller.peer, asked.position)
        beside = self._beside(caller)
        return self._page(request.request, page.units, at, not page.whole or beside.rest, None, beside)

    def pushed(
        self, caller: Caller, request: int, units: tuple[Unverified, ...], after: int, at: int
    ) -> ResyncPage:
        """A page for somebody who follows; they were told everything up to `after`."""
        return self._page(request, units, at, False, None, self._beside(caller), after)

    def has_news_beside(self, caller: Caller) -> bool:
        """Whether there is something to tell a follower that is not in the order of the log."""
        told = self._told.get(caller.peer)
        if told is None:
            return False
        _, told.tombstones = self._cache.tombstones.of(caller.person, told.tombstones, 0)
        return told.tombstones < self._cache.tombstones.next or told.receipts < self._receipts.next

    def refusal(self, request: int, reason: Reason) -> ResyncPage:
        """No page."""
        return ResyncPage(self._room, request, (), (), (), (), None, False, None, (), reason)

    def want(self, want: Want, since: float) -> Given:
        """Events by id, control events too: after retention nobody could fill gaps otherwise."""
        units: list[tuple[EventId, Unverified]] = []
        unknown: list[EventId] = []
        reason: Reason | None = None
        for event in want.ids:
            unit = self._cache.unit(event, since)
            if unit is None:
                unknown.append(event)
                gone = self._cache.tombstones.reason(event)
                if gone is Reason.RETENTION or self._cache.position(event) is not None:
                    reason = Reason.RETENTION  # it went, or is about to
            else:
                units.append((event, unit))
        page, count = self._pages.within(units)
        if count < len(units):
            reason = Reason.TOO_LARGE
        elif unknown and reason is None:
            reason = Reason.NOT_HELD
        return Given(self._room, want.request, tuple(page), self._pages.cards(page), tuple(unknown), reason)

    def control(
        self, asked: AskControl, relays: tuple[Contact, ...], upto: EventId | None = None
    ) -> ControlPage:
        """Control events beyond these heads, causes first; with `upto`, this one and its causes alone."""
        beyond = self._dag.between(asked.heads)
        if upto is not None:
            beyond = [each for each in beyond if each == upto or self._dag.is_before(each, upto)]
        units = [
            (event, unit)
            for event in beyond[: self._pages.events]
            if (unit := self._cache.unit(event, 0.0)) is not None
        ]
        page, count = self._pages.within(units)
        return ControlPage(
            self._room,
            asked.request,
            tuple(page),
            self._pages.cards(page),
            count < len(beyond),
            self._dag.heads[:HEADS] if upto is None else (upto,),
            relays[:64],
            None,
        )

    def down(self, peer: PeerId) -> None:
        """What an asker was told may have been lost with its link."""
        self._told.pop(peer, None)

    def _is_good(self, cursor: RelayCursor) -> bool:
        """Whether one can go on from there without missing anything.

        Past the end lies a cursor of ours that was given out after the backup from which we were restored.
        """
        if cursor.epoch != self._epoch or cursor.position > self._cache.end:
            return False
        return cursor.position < self._cache.first or cursor.position >= self._cache.floor

    def _goes_on(self, peer: PeerId, position: int) -> None:
        """Somebody will go on from here, who knows already that it may have missed something."""
        self._anew.pop(peer, None)
        if position < self._cache.floor:
            self._anew[peer] = position
        if len(self._anew) > _ASKERS:
            del self._anew[next(iter(self._anew))]

    def _begin(self, peer: PeerId, position: int) -> None:
        self._told.pop(peer, None)
        self._told[peer] = _Told(self._cache.tombstones.first(position))
        if len(self._told) > _ASKERS:
            del self._told[next(iter(self._told))]

    def _beside(self, caller: Caller) -> _Beside:
        """Tombstones of the asker's own events, and receipts, as far as they were not told."""
        told = self._told.get(caller.peer)
        return _NOTHING if told is None else self._tell(caller, told)

    def _tell(self, caller: Caller, told: _Told) -> _Beside:
        gone = self._cache.tombstones
        tombstones, told.tombstones = gone.of(caller.person, told.tombstones, _TOMBSTONES)
        receipts, told.receipts = self._receipts.page(told.receipts)
        rest = told.tombstones < gone.next or told.receipts < self._receipts.next
        return _Beside(tuple(tombstones), receipts, rest)

    def _page(
        self,
        request: int,
        units: tuple[Unverified, ...],
        at: int | None,
        more: bool,
        reason: Reason | None,
        beside: _Beside | None = None,
        after: int | None = None,
    ) -> ResyncPage:
        beside = beside or _NOTHING
        return ResyncPage(
            self._room,
            request,
            units,
            self._pages.cards(units),
            beside.receipts,
            beside.tombstones,
            None if at is None else self.cursor(at),
            more,
            self.oldest,
            self._dag.heads[:HEADS],
            reason,
            None if after is None else self.cursor(after),
        )
