"""Serves stored events: pages past a cursor, pushed pages, single events, and the control DAG."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from linnet.core.ids import Contact, EventId, PeerId
from linnet.core.reasons import Reason
from linnet.delivery.context import CardBook
from linnet.delivery.messages import Given, Want
from linnet.event.event import Unverified
from linnet.event.signing import decode_unit
from linnet.identity.cards import Card
from linnet.machine.outbox import Outbox
from linnet.rooms.auth.control_graph import ControlDag
from linnet.rooms.messages import (
    HEADS,
    AskControl,
    ControlPage,
    RelayCursor,
    Resync,
    ResyncPage,
    RoomReceipt,
    Tombstone,
)
from linnet.rooms.receipts import StoredReceipts
from linnet.rooms.relay.access_control import Caller, Presence, why_not_member
from linnet.rooms.relay.event_cache import EventCache, EventRetention, Placed
from linnet.rooms.relay.frontier import Frontier, Statements
from linnet.rooms.relay.ingest import Fresh, Turn
from linnet.rooms.relay_statements import HELD, HeldEvent, Reach, RelayStatement
from linnet.trace.records import Kind, Record

_TOMBSTONES = 1024
_ASKERS = 4096
"""The most peers whose progress is remembered; the oldest is forgotten."""


class _Told(Struct):
    """How far a caller was sent tombstones and receipts, which are not in the order of the log."""

    tombstones: int
    receipts: int = 0


class _Beside(NamedTuple):
    """The tombstones and receipts of a page."""

    tombstones: tuple[Tombstone, ...]
    receipts: tuple[RoomReceipt, ...]
    rest: bool
    """Whether there are more of them."""


_NOTHING = _Beside((), (), False)


class Mailbox:
    """Builds the pages of one room. The caller was authorised before."""

    def __init__(
        self,
        epoch: bytes,
        cache: EventCache,
        dag: ControlDag,
        pages: Pages,
        receipts: StoredReceipts,
        statements: Statements,
    ) -> None:
        self._room = dag.room
        self._epoch = epoch
        self._cache = cache
        self.dag = dag
        self._pages = pages
        self._receipts = receipts
        self._statements = statements
        self._told: dict[PeerId, _Told] = {}
        self._anew: dict[PeerId, int] = {}
        """The positions of callers that read from the oldest event and are still before a removed one."""

    def cursor(self, position: int) -> RelayCursor:
        """Return the cursor of a position in the log."""
        return RelayCursor(self._epoch, position)

    @property
    def oldest(self) -> RelayCursor:
        """The cursor before the create event, which is never evicted: all stored events lie past it."""
        return self.cursor(self._cache.first - 1)

    def reached_by(self, cursor: RelayCursor | None) -> int:
        """Return the position up to which a reader with this cursor has everything; 0 if it is not ours."""
        if cursor is None or cursor.epoch != self._epoch or cursor.position > self._cache.end:
            return 0
        return cursor.position

    def resync_page(self, caller: Caller, request: Resync, since: float, now: float) -> ResyncPage:
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
        said = None
        if request.signed and caller.linked:
            shown = [(position, entry.head) for position, entry in placed if position <= at]
            reach = Reach(asked.position, at, self._cache.floor_since(since), self._cache.left_out[:HELD])
            said = self.sign_reach(shown, reach, now)
        if not caller.linked:
            # Without a link we would not notice a loss: all of it is sent again with the next request.
            beside = self._tell(caller, _Told(self._cache.tombstones.first_untold(asked.position)))
            return self._page(request.request, page.units, at, not page.whole, None, beside)
        if request.cursor is None or caller.peer not in self._told:
            self._begin(caller.peer, asked.position)
        beside = self._beside(caller)
        more = not page.whole or beside.rest
        return self._page(request.request, page.units, at, more, None, beside, said=said)

    def pushed_page(
        self,
        caller: Caller,
        request: int,
        units: tuple[Unverified, ...],
        after: int,
        at: int,
        said: RelayStatement | None,
    ) -> ResyncPage:
        """Build a page for a follower that has everything up to `after`."""
        return self._page(request, units, at, False, None, self._beside(caller), after, said)

    def sign_reach(self, placed: Iterable[tuple[int, EventId]], reach: Reach, now: float) -> RelayStatement:
        """Sign that these are all events of a part of the log; operations on keys are not named."""
        shelf, control = self._cache.shelf, self._cache.control
        held = tuple(
            HeldEvent(event, position, event in control) for position, event in placed if event not in shelf
        )
        return self._statements.sign_page(held, reach, now)

    def has_news_beside(self, caller: Caller) -> bool:
        """Return whether a follower lacks tombstones or receipts."""
        told = self._told.get(caller.peer)
        if told is None:
            return False
        _, told.tombstones = self._cache.tombstones.page_of(caller.person, told.tombstones, 0)
        return told.tombstones < self._cache.tombstones.next or told.receipts < self._receipts.next

    def refusal(self, request: int, reason: Reason) -> ResyncPage:
        """Build the answer that gives a reason and no page."""
        return ResyncPage(self._room, request, (), (), (), (), None, False, None, (), reason)

    def give_events(self, want: Want, since: float) -> Given:
        """Return events by id, control events too: otherwise nobody could fill gaps after retention."""
        units: list[tuple[EventId, Unverified]] = []
        unknown: list[EventId] = []
        reason: Reason | None = None
        for event in want.ids:
            unit = self._cache.unit(event, since)
            if unit is None:
                unknown.append(event)
                gone = self._cache.tombstones.reason(event)
                if gone is Reason.RETENTION or self._cache.position(event) is not None:
                    reason = Reason.RETENTION  # It was removed, or is about to be.
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
        """Build a page of control events beyond heads; with `upto`, of that event and its causes alone."""
        beyond = self.dag.between(asked.heads)
        if upto is not None:
            beyond = [each for each in beyond if each == upto or self.dag.is_before(each, upto)]
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
            self.dag.heads[:HEADS] if upto is None else (upto,),
            relays[:64],
            None,
        )

    def handle_link_down(self, peer: PeerId) -> None:
        """Forget what a peer was sent: it may have been lost with its link."""
        self._told.pop(peer, None)

    def _is_good(self, cursor: RelayCursor) -> bool:
        """Return whether a reader can continue from a cursor without missing anything.

        A cursor of ours lies past the end if it was given out after the backup that we were restored from.
        """
        if cursor.epoch != self._epoch or cursor.position > self._cache.end:
            return False
        return cursor.position < self._cache.first or cursor.position >= self._cache.floor

    def _goes_on(self, peer: PeerId, position: int) -> None:
        """Let a peer continue from a position although it may miss events: it knows that already."""
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
        """Return the tombstones of the caller's own events, and the receipts, that it was not sent yet."""
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
        said: RelayStatement | None = None,
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
            self.dag.heads[:HEADS],
            reason,
            None if after is None else self.cursor(after),
            said,
        )


class Resyncs:
    """Answers and records the requests of one room's members for the events that they missed."""

    def __init__(
        self,
        mailbox: Mailbox,
        followers: Followers,
        retention: EventRetention,
        presence: Presence,
        out: Outbox,
    ) -> None:
        self._room = mailbox.dag.room
        self._dag = mailbox.dag
        self._mailbox = mailbox
        self._followers = followers
        self._retention = retention
        self._presence = presence
        self._out = out
        self._deferred: dict[PeerId, tuple[Caller, Resync]] = {}
        """The latest request of each peer whose greeting is not answered yet."""

    def answer(self, caller: Caller, request: Resync, now: float) -> ResyncPage:
        """Record a request; return the page, or one that only gives a reason."""
        self._out.record(Record(Kind.RESYNC, self._room, peer=caller.peer, note="receive-resync"))
        page = self._build_page(caller, request, now)
        note = "reply-resync" if page.reason is None else "reject-resync"
        events, reason = len(page.units), page.reason
        self._out.record(
            Record(Kind.RESYNC, self._room, peer=caller.peer, events=events, reason=reason, note=note)
        )
        return page

    def defer_if_waiting(self, caller: Caller, request: Resync) -> bool:
        """Let a request wait if its caller may be a member by control events that we are asking it for."""
        if caller.peer not in self._presence.waiting or why_not_member(self._dag.view(), caller) is None:
            return False
        self._deferred[caller.peer] = (caller, request)
        return True

    def answer_deferred(self, peer: PeerId, now: float) -> None:
        """Answer the deferred request of a peer that has sent all the control events it knows."""
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
        page = self._mailbox.resync_page(caller, request, self._retention.since(now), now)
        if request.follow and caller.linked and not page.more and page.next is not None:
            self._followers.add(caller, request.request, page.next.position, request.signed)
        else:
            self._followers.remove(caller.peer)
        return page


class _Follower(Struct):
    caller: Caller
    request: int
    position: int
    """The position up to which everything was sent."""
    signed: bool
    """Whether it wants a signed statement with each page."""


class Followers:
    """Pushes new events to the members that follow a room, for as long as their link lasts.

    Pushed pages wait in the link's own outbox, which is bounded: a follower that does not read loses its
    link (``slow_peer``) and asks again from its cursor. Nothing is queued here.
    """

    def __init__(self, mailbox: Mailbox, pages: Pages, frontier: Frontier) -> None:
        self._mailbox = mailbox
        self._pages = pages
        self._frontier = frontier
        self._count = frontier.count
        """The number of events that the room ever took, when events were pushed last."""
        self._followers: dict[PeerId, _Follower] = {}

    def add(self, caller: Caller, request: int, position: int, signed: bool) -> None:
        """Push new events to a caller that has everything up to a position."""
        self._followers[caller.peer] = _Follower(caller, request, position, signed)

    def remove(self, peer: PeerId) -> None:
        """Stop pushing events to a peer."""
        self._followers.pop(peer, None)

    def expel(
        self, why: Callable[[Caller], Reason | None], send: Callable[[PeerId, ResyncPage], None]
    ) -> None:
        """Remove the followers that may no longer read, and send each the reason."""
        for peer, follower in list(self._followers.items()):
            reason = why(follower.caller)
            if reason is not None:
                del self._followers[peer]
                send(peer, self._mailbox.refusal(follower.request, reason))

    def push_events(self, turn: Turn, end: int, now: float) -> None:
        """Promise every follower the events of a turn; `end` is the end of the log now."""
        if self._count + len(turn.fresh) != self._frontier.count:
            # Events were kept that nobody was told of: what was signed of this part of the log is no longer
            # the whole of it.
            self._frontier.begin_anew()
        self._count = self._frontier.count
        for peer, follower in self._followers.items():
            news = [each for each in turn.fresh if each.position > follower.position]
            for units, at in self._cut(news, peer, end):
                self._push(turn, peer, follower, news, units, at, now)
            if not news and self._mailbox.has_news_beside(follower.caller):
                self._push(turn, peer, follower, news, (), end, now)

    def _push(
        self,
        turn: Turn,
        peer: PeerId,
        follower: _Follower,
        news: list[Fresh],
        units: tuple[Unverified, ...],
        at: int,
        now: float,
    ) -> None:
        after, said = follower.position, None
        if follower.signed:
            # Those that it sent itself are named as well.
            shown = [(each.position, each.event) for each in news if after < each.position <= at]
            said = self._mailbox.sign_reach(shown, Reach(after, at, 0, ()), now)
        page = self._mailbox.pushed_page(follower.caller, follower.request, units, after, at, said)
        follower.position = at
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
    """The units that fit one message, and at least one if there is any."""

    ids: tuple[EventId, ...]
    units: tuple[Unverified, ...]
    last: int
    """The position of the last unit; 0 if there is none."""
    whole: bool
    """Whether nothing was left out."""


class Pages:
    """Cuts units into pages, bounded in number and bytes, and finds the cards to check them."""

    def __init__(self, cards: CardBook, events: int, size: int) -> None:
        self._cards = cards
        self.events = events
        """The most units in a page."""
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
        """Take as many units as a page holds; return them and their number."""
        taken: list[Unverified] = []
        size = 0
        for _, unit in units:
            size += sum(map(len, unit.tails))
            if taken and (size > self._size or len(taken) == self.events):
                break
            taken.append(unit)
        return taken, len(taken)

    def cards_for(self, units: Iterable[Unverified]) -> tuple[Card, ...]:
        """Return the card of each device that signed one of these units."""
        found: dict[bytes, Card] = {}
        for unit in units:
            card = self._cards.find(unit.author, unit.device)
            if card is not None:
                found[unit.author + unit.device] = card
        return tuple(found.values())
