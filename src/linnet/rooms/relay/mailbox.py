"""Serves stored events: pages past a cursor, pushed pages, single events, and the control DAG."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from linnet.core.ids import Contact, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.cards import CardBook
from linnet.delivery.causal_messages import Given, Want
from linnet.event.event import Unverified
from linnet.event.signing import decode_unit
from linnet.identity.cards import Card
from linnet.machine.outbox import Outbox
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
from linnet.rooms.relay.access_control import HEADS, Caller, Presence, why_not_member
from linnet.rooms.relay.event_cache import EventCache, Placed
from linnet.rooms.relay.ingest import Fresh, Turn
from linnet.rooms.relay.retention import EventRetention
from linnet.rooms.relay.stored_receipts import StoredReceipts
from linnet.trace.records import Kind, Record

_TOMBSTONES = 1024
_ASKERS = 4096
"""Askers of whom it is remembered what they were told beside events; the oldest is forgotten."""


class _Told:
    """How far a caller was told about tombstones and receipts, which are not in the order of the log."""

    __slots__ = ("receipts", "tombstones")

    def __init__(self, tombstones: int) -> None:
        self.tombstones = tombstones
        self.receipts = 0


class _Beside(NamedTuple):
    """The tombstones and receipts of a page."""

    tombstones: tuple[Tombstone, ...]
    receipts: tuple[RoomReceipt, ...]
    rest: bool
    """Whether there is more of it."""


_NOTHING = _Beside((), (), False)


class Mailbox:
    """Builds the pages of one room. The caller was authorised before."""

    def __init__(
        self,
        room: TopicId,
        epoch: bytes,
        cache: EventCache,
        dag: ControlDag,
        pages: Pages,
        receipts: StoredReceipts,
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
        """The cursor of a position in the log."""
        return RelayCursor(self._epoch, position)

    @property
    def oldest(self) -> RelayCursor:
        """The cursor before the create event, which is never evicted: everything kept lies past it."""
        return self.cursor(self._cache.first - 1)

    def reached_by(self, cursor: RelayCursor | None) -> int:
        """The position up to which the holder of a cursor has everything; 0 if the cursor is not ours."""
        if cursor is None or cursor.epoch != self._epoch or cursor.position > self._cache.end:
            return 0
        return cursor.position

    def resync_page(self, caller: Caller, request: Resync, since: float) -> ResyncPage:
        """Build the page past a cursor. The answer to an expired cursor says where to begin instead."""
        asked = request.cursor
        if asked is None:
            asked = self.oldest
        elif not self._is_good(asked) and self._anew.get(caller.peer) != asked.position:
            return self._page(request.request, (), None, False, Reason.CURSOR_EXPIRED)
        limit = min(request.limit, self._pages.events)
        placed = self._cache.read(asked.position, since, limit + 1)
        page = self._pages.cut_page(placed, limit)
        end = max(asked.position, self._cache.end)
        at = end if page.whole else page.last
        self._goes_on(caller.peer, at)
        if not caller.linked:
            # Nobody would tell us that it never arrived: it is told again with the next request.
            beside = self._tell(caller, _Told(self._cache.tombstones.first_untold(asked.position)))
            return self._page(request.request, page.units, at, not page.whole, None, beside)
        if request.cursor is None or caller.peer not in self._told:
            self._begin(caller.peer, asked.position)
        beside = self._beside(caller)
        return self._page(request.request, page.units, at, not page.whole or beside.rest, None, beside)

    def pushed_page(
        self, caller: Caller, request: int, units: tuple[Unverified, ...], after: int, at: int
    ) -> ResyncPage:
        """Build a page for a follower that has everything up to `after`."""
        return self._page(request, units, at, False, None, self._beside(caller), after)

    def has_news_beside(self, caller: Caller) -> bool:
        """Whether a follower lacks tombstones or receipts."""
        told = self._told.get(caller.peer)
        if told is None:
            return False
        _, told.tombstones = self._cache.tombstones.page_of(caller.person, told.tombstones, 0)
        return told.tombstones < self._cache.tombstones.next or told.receipts < self._receipts.next

    def refusal(self, request: int, reason: Reason) -> ResyncPage:
        """Build the answer that gives a reason and no page."""
        return ResyncPage(self._room, request, (), (), (), (), None, False, None, (), reason)

    def give_events(self, want: Want, since: float) -> Given:
        """Give events by id, control events too: after retention nobody could fill gaps otherwise."""
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
        page, count = self._pages.cut_units(units)
        if count < len(units):
            reason = Reason.TOO_LARGE
        elif unknown and reason is None:
            reason = Reason.NOT_HELD
        return Given(
            self._room, want.request, tuple(page), self._pages.cards_for(page), tuple(unknown), reason
        )

    def control_page(
        self, asked: AskControl, relays: tuple[Contact, ...], upto: EventId | None = None
    ) -> ControlPage:
        """Build a page of control events beyond heads; `upto`: that event and its causes alone."""
        beyond = self._dag.between(asked.heads)
        if upto is not None:
            beyond = [each for each in beyond if each == upto or self._dag.is_before(each, upto)]
        units = [
            (event, unit)
            for event in beyond[: self._pages.events]
            if (unit := self._cache.unit(event, 0.0)) is not None
        ]
        page, count = self._pages.cut_units(units)
        return ControlPage(
            self._room,
            asked.request,
            tuple(page),
            self._pages.cards_for(page),
            count < len(beyond),
            self._dag.heads[:HEADS] if upto is None else (upto,),
            relays[:64],
            None,
        )

    def handle_link_down(self, peer: PeerId) -> None:
        """Forget what an asker was told: it may have been lost with its link."""
        self._told.pop(peer, None)

    def _is_good(self, cursor: RelayCursor) -> bool:
        """Whether a reader can continue from a cursor without missing anything.

        Past the end lies a cursor of ours that was given out after the backup from which we were restored.
        """
        if cursor.epoch != self._epoch or cursor.position > self._cache.end:
            return False
        return cursor.position < self._cache.first or cursor.position >= self._cache.floor

    def _goes_on(self, peer: PeerId, position: int) -> None:
        """Let a peer continue from a position although it may miss something: it knows that already."""
        self._anew.pop(peer, None)
        if position < self._cache.floor:
            self._anew[peer] = position
        if len(self._anew) > _ASKERS:
            del self._anew[next(iter(self._anew))]

    def _begin(self, peer: PeerId, position: int) -> None:
        self._told.pop(peer, None)
        self._told[peer] = _Told(self._cache.tombstones.first_untold(position))
        if len(self._told) > _ASKERS:
            del self._told[next(iter(self._told))]

    def _beside(self, caller: Caller) -> _Beside:
        """Tombstones of the caller's own events, and receipts, that the caller was not told yet."""
        told = self._told.get(caller.peer)
        return _NOTHING if told is None else self._tell(caller, told)

    def _tell(self, caller: Caller, told: _Told) -> _Beside:
        gone = self._cache.tombstones
        tombstones, told.tombstones = gone.page_of(caller.person, told.tombstones, _TOMBSTONES)
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
            self._pages.cards_for(units),
            beside.receipts,
            beside.tombstones,
            None if at is None else self.cursor(at),
            more,
            self.oldest,
            self._dag.heads[:HEADS],
            reason,
            None if after is None else self.cursor(after),
        )


class Resyncs:
    """Answers the requests of one room for what was missed, and records them."""

    def __init__(
        self,
        room: TopicId,
        dag: ControlDag,
        mailbox: Mailbox,
        followers: Followers,
        retention: EventRetention,
        presence: Presence,
        out: Outbox,
    ) -> None:
        self._room = room
        self._dag = dag
        self._mailbox = mailbox
        self._followers = followers
        self._retention = retention
        self._presence = presence
        self._out = out
        self._deferred: dict[PeerId, tuple[Caller, Resync]] = {}
        """The latest request of each peer whose greeting waits."""

    def answer(self, caller: Caller, request: Resync, now: float) -> ResyncPage:
        """Record a request; returns the page, or one that says why there is none."""
        self._out.record(Record(Kind.RESYNC, self._room, peer=caller.peer, note="receive-resync"))
        page = self._build_page(caller, request, now)
        note = "reply-resync" if page.reason is None else "reject-resync"
        events, reason = len(page.units), page.reason
        self._out.record(
            Record(Kind.RESYNC, self._room, peer=caller.peer, events=events, reason=reason, note=note)
        )
        return page

    def defer_if_waiting(self, caller: Caller, request: Resync) -> bool:
        """Let a request wait whose caller may be a member by control events that it is being asked for."""
        if caller.peer not in self._presence.waiting or why_not_member(self._dag.view(), caller) is None:
            return False
        self._deferred[caller.peer] = (caller, request)
        return True

    def answer_deferred(self, peer: PeerId, now: float) -> None:
        """Answer the deferred request of a peer that has told all that it knows."""
        deferred = self._deferred.pop(peer, None)
        if deferred is not None:
            self._out.committed.send(peer, self.answer(*deferred, now))

    def handle_link_down(self, peer: PeerId) -> None:
        """Forget the deferred request of a peer."""
        self._deferred.pop(peer, None)

    def _build_page(self, caller: Caller, request: Resync, now: float) -> ResyncPage:
        reason = why_not_member(self._dag.view(), caller)
        if reason is not None:
            return self._mailbox.refusal(request.request, reason)
        self._presence.note_seen(caller, now)
        self._retention.groups.note_read(caller, self._mailbox.reached_by(request.cursor))
        self._retention.expire_events(now)
        page = self._mailbox.resync_page(caller, request, self._retention.since(now))
        if request.follow and caller.linked and not page.more and page.next is not None:
            self._followers.add(caller, request.request, page.next.position)
        else:
            self._followers.remove(caller.peer)
        return page


class _Follower:
    __slots__ = ("caller", "position", "request")

    def __init__(self, caller: Caller, request: int, position: int) -> None:
        self.caller = caller
        self.request = request
        self.position = position
        """Everything up to here was sent."""


class Followers:
    """Members that are pushed new events for as long as their link lasts.

    What is pushed waits in the link's own outbox, which is bounded: a follower that does not read loses its
    link (``slow_peer``) and asks again from its cursor. Nothing is queued here.
    """

    def __init__(self, mailbox: Mailbox, pages: Pages) -> None:
        self._mailbox = mailbox
        self._pages = pages
        self._followers: dict[PeerId, _Follower] = {}

    def __len__(self) -> int:
        return len(self._followers)

    def add(self, caller: Caller, request: int, position: int) -> None:
        """Push new events to a caller that has everything up to a position."""
        self._followers[caller.peer] = _Follower(caller, request, position)

    def remove(self, peer: PeerId) -> None:
        """Push nothing more to a peer."""
        self._followers.pop(peer, None)

    def expel(
        self, why: Callable[[Caller], Reason | None], send: Callable[[PeerId, ResyncPage], None]
    ) -> None:
        """Remove the followers that may not read any more, and send each the reason."""
        for peer, follower in list(self._followers.items()):
            reason = why(follower.caller)
            if reason is not None:
                del self._followers[peer]
                send(peer, self._mailbox.refusal(follower.request, reason))

    def push_events(self, turn: Turn, end: int) -> None:
        """Promise every follower the events of a turn; `end` is the end of the log now."""
        for peer, follower in self._followers.items():
            news = [each for each in turn.fresh if each.position > follower.position]
            for units, at in self._cut(news, peer, end):
                page = self._mailbox.pushed_page(
                    follower.caller, follower.request, units, follower.position, at
                )
                follower.position = at
                turn.promise_send(peer, page)
            if not news and self._mailbox.has_news_beside(follower.caller):
                page = self._mailbox.pushed_page(
                    follower.caller, follower.request, (), follower.position, end
                )
                follower.position = end
                turn.promise_send(peer, page)

    def _cut(self, news: list[Fresh], peer: PeerId, end: int) -> Iterator[tuple[tuple[Unverified, ...], int]]:
        """Cut new events into pages, without those that the follower sent itself."""
        others = [each for each in news if each.source != peer]
        if news and not others:
            yield (), end
        while others:
            units, count = self._pages.cut_units((each.event, each.unit) for each in others)
            rest = others[count:]
            yield tuple(units), others[count - 1].position if rest else end
            others = rest


class Page(NamedTuple):
    """As many units as one message takes, and one at least if there is one."""

    ids: tuple[EventId, ...]
    units: tuple[Unverified, ...]
    last: int
    """The position of the last; 0 if there is none."""
    whole: bool
    """Whether nothing was left out."""


class Pages:
    """Cuts units into pages, bounded in number and bytes, and finds the cards to check them."""

    def __init__(self, cards: CardBook, events: int, size: int) -> None:
        self._cards = cards
        self.events = events
        """Units in a page at most."""
        self._size = size

    def cut_page(self, placed: Sequence[Placed], limit: int | None = None) -> Page:
        """Cut the first page of stored units."""
        most = self.events if limit is None else min(limit, self.events)
        count, size = 0, 0
        for _, entry in placed[:most]:
            size += len(entry.raw)
            if count and size > self._size:
                break
            count += 1
        taken = placed[:count]
        return Page(
            tuple(entry.head for _, entry in taken),
            tuple(decode_unit(entry.raw) for _, entry in taken),
            taken[-1][0] if taken else 0,
            count == len(placed),
        )

    def cut_units(self, units: Iterable[tuple[EventId, Unverified]]) -> tuple[list[Unverified], int]:
        """Take as many units as a page holds; returns them and their number."""
        taken: list[Unverified] = []
        size = 0
        for _, unit in units:
            size += sum(map(len, unit.tails))
            if taken and (size > self._size or len(taken) == self.events):
                break
            taken.append(unit)
        return taken, len(taken)

    def cards_for(self, units: Iterable[Unverified]) -> tuple[Card, ...]:
        """The card of each device that signed one of these."""
        found: dict[bytes, Card] = {}
        for unit in units:
            card = self._cards.find(unit.author, unit.device)
            if card is not None:
                found[unit.author + unit.device] = card
        return tuple(found.values())
