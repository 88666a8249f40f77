"""Ledgers of events on their way down: the routes that have yet to answer for each, here and at other nodes.

The ledger of an event at its rendezvous is held by others as well (Agostinho 2021, section 3.8). These
trackers are the nodes closest to the attribute's key, one of which will be the next rendezvous. They are told
of each event before its publisher is told that it was taken, then of the routes that have answered, and in
the end that it is finished: the latter two for many events at once, twice a second. A tracker that hears of
an answer too late sends an event once more to a route that has it, no worse. If the rendezvous is gone, the
trackers send its unfinished events to the next one; if that is a tracker itself, it goes on with the routes
that have not answered. Finished events are kept for a short while, for routes that were away and come back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct

from linnet.content.config import ContentConfig
from linnet.content.filter_backup import Backups
from linnet.content.messages import LOGGED, Answered, Arrival, Log, Logged, SoFar, Tracked
from linnet.content.passing import Passing
from linnet.content.rendezvous import Claims
from linnet.content.routes import Reach
from linnet.core.ids import Contact, EventId, PeerId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.machine.outbox import Outbox
from linnet.trace.records import Kind, Record

Way = tuple[EventId, str]
"""An event, and the attribute along whose filters it travels."""


class Count(NamedTuple):
    """What was counted for an event below a node."""

    delivered: int
    """Nodes where an application was handed it this way: each node once, whatever its subscriptions."""
    missed: int
    """Branches that did not answer."""
    again: int = 0
    """Nodes that want it this way too, and were handed it another way."""
    matches: int = 0
    """Subscriptions that were handed it, at all these nodes."""

    def plus(self, other: Count) -> Count:
        """Return the sum of both."""
        return Count(*(one + another for one, another in zip(self, other, strict=True)))

    @property
    def counted(self) -> Count:
        """The same count for a second sender, after a first one was told it: nothing in it is new."""
        return Count(0, self.missed, self.again + self.delivered, 0)


def count_of(told: Arrival | Answered | SoFar) -> Count:
    """Return the count that a peer reports."""
    return Count(told.delivered, told.missed, told.again, told.matches)


class Branch(Struct, eq=False):
    """A route that has yet to answer for an event, and the keepers asked in its place."""

    contact: Contact
    """The peer that the event is sent to: the route itself, or one past it."""
    backups: list[Contact]
    """Keepers of its filters that were not asked yet."""
    awaited: bool = True
    """Whether it may still answer by itself: false for a rendezvous that is gone."""
    asked: dict[PeerId, None] = {}
    sent: int = 0
    stood_in: bool = False
    """Whether its own routes are served in its place; it may still want the event itself, and is sent it."""
    has_it: bool = False
    """Whether it said that it has the event and waits for others."""
    failed: bool = False
    """Whether its link broke, or none came up, since the event was sent."""
    so_far: SoFar | None = None
    """Its preliminary report on the nodes below it, before all of them have answered."""

    @property
    def target(self) -> PeerId:
        """The peer that the event is sent to."""
        return self.contact.peer


class Upstream(NamedTuple):
    """The peer that sent an event down to this node, and is told when all below have answered."""

    peer: PeerId
    said_as: str
    """The attribute, or the part of it, by which the event came."""
    patience: float
    """Seconds for which that peer waits."""


class Ledger(Struct, eq=False):
    """The routes that have yet to answer for one event and attribute."""

    passing: Passing | None
    """The event, for as long as it may have to be sent again."""
    hops: int
    upstream: Upstream | None = None
    open: dict[PeerId, Branch] = {}
    """The open branches, by route."""
    served: dict[PeerId, None] = {}
    """Routes that were ever sent it, or stood in for: none is sent it twice."""
    tries: int = 0
    timed: bool = False
    """Whether a timer runs."""
    deadline: float = 0.0
    settled_at: float = 0.0
    count: Count = Count(0, 0)
    """The count so far."""
    so_far: SoFar | None = None
    """The preliminary report that was sent when only silent routes were left."""

    def branch(self, peer: PeerId) -> PeerId | None:
        """Return the open route that a peer answers for."""
        if peer in self.open:
            return peer
        return next((route for route, branch in self.open.items() if branch.target == peer), None)


class Ledgers:
    """All ledgers, the oldest first; finished ones stay for a while so that their events are recognised."""

    def __init__(self, config: ContentConfig) -> None:
        self._taken_for = config.taken_for
        self._most = config.remembered
        self._ledgers: dict[Way, Ledger] = {}
        self.open: dict[Way, None] = {}
        """The events for which some route has yet to answer."""

    def __len__(self) -> int:
        return len(self._ledgers)

    def __contains__(self, way: Way) -> bool:
        return way in self._ledgers

    def __getitem__(self, way: Way) -> Ledger:
        return self._ledgers[way]

    def get(self, way: Way) -> Ledger | None:
        """Return the ledger of an event, or None."""
        return self._ledgers.get(way)

    def put(self, way: Way, ledger: Ledger) -> list[tuple[Way, Ledger]]:
        """Add a ledger. Return the open ones that had to be given up to make room for it."""
        self._ledgers[way] = ledger
        given_up: list[tuple[Way, Ledger]] = []
        while len(self._ledgers) > self._most:
            oldest = next(iter(self._ledgers))
            forgotten = self._ledgers.pop(oldest)
            self.open.pop(oldest, None)
            if forgotten.open:
                given_up.append((oldest, forgotten))
        return given_up

    def settle(self, way: Way, now: float) -> None:
        """Close the ledger of an event for which all have answered: it need not be sent again."""
        del self.open[way]
        ledger = self._ledgers[way]
        ledger.passing, ledger.settled_at = None, now
        ledger.served.clear()

    def tidy(self, now: float) -> None:
        """Forget finished ledgers that are so old that their events would be refused if they came again."""
        for way, ledger in list(self._ledgers.items()):
            if way not in self.open and ledger.settled_at + self._taken_for <= now:
                del self._ledgers[way]


_TOLD = 0.5
"""Seconds for which news for trackers is gathered."""


class LogDue(Timer, frozen=True, gc=False):
    """The news gathered for trackers is due."""


class _Log(Struct, eq=False):
    """An event that is tracked here for its rendezvous, the leader, with the answers reported so far."""

    leader: PeerId
    passing: Passing
    hops: int
    at: float
    answered: dict[PeerId, Count] = {}


class _Untold(Struct, eq=False):
    """The news gathered for one tracker."""

    answers: dict[tuple[Way, PeerId], Count] = {}
    ended: dict[Way, None] = {}


class Trackers:
    """Events that this node leads as rendezvous, and events that it tracks for other rendezvous."""

    def __init__(self, config: ContentConfig, reach: Reach, backups: Backups, out: Outbox) -> None:
        self._config = config
        self._out = out
        self._reach = reach
        self._backups = backups
        self._led: dict[Way, tuple[Contact, ...]] = {}
        self._logs: dict[Way, _Log] = {}
        self._untold: dict[PeerId, _Untold] = {}

    def __len__(self) -> int:
        return len(self._led) + len(self._logs)

    # At the rendezvous.

    def lead(self, way: Way, passing: Passing, hops: int, now: float) -> None:
        """Have other nodes track an event of which this node is the rendezvous."""
        if not self._config.reliable or way in self._led:
            return
        trackers = self._backups.around(way[1], now) if self._config.backups else ()
        if not trackers:
            return
        self._led[way] = trackers
        for contact in trackers:
            self._reach.send(contact, Log(way[1], passing.unit, passing.card, hops))

    def note_answer(self, way: Way, route: PeerId, count: Count) -> None:
        """Note, as news for the trackers, that a route has answered for all below it."""
        is_first = not self._untold
        for contact in self._led.get(way, ()):
            self._untold.setdefault(contact.peer, _Untold()).answers[way, route] = count
        self._set_timer(is_first)

    def note_end(self, way: Way) -> None:
        """Note, as news for the trackers, that an event is finished."""
        self._logs.pop(way, None)
        is_first = not self._untold
        for contact in self._led.pop(way, ()):
            self._untold.setdefault(contact.peer, _Untold()).ended[way] = None
        self._set_timer(is_first)

    def _set_timer(self, is_first: bool) -> None:
        if is_first and self._untold:
            self._out.set_timer(_TOLD, LogDue())

    def tell_trackers(self) -> None:
        """Tell all trackers the news of their events."""
        untold, self._untold = self._untold, {}
        for tracker, news in untold.items():
            open_ = [each for each in news.answers.items() if each[0][0] not in news.ended]
            told = [Answered(*way, route, *count) for (way, route), count in open_]
            ends = [Tracked(*way) for way in news.ended]
            for start in range(0, max(len(told), len(ends)), LOGGED):
                some = slice(start, start + LOGGED)
                self._reach.answer(tracker, Logged(tuple(told[some]), tuple(ends[some])))

    # At the trackers.

    def add_log(self, leader: PeerId, way: Way, passing: Passing, hops: int, now: float) -> None:
        """Track an event of a rendezvous; the oldest is given up where there are too many."""
        self._logs[way] = _Log(leader, passing, hops, now)
        if len(self._logs) <= self._config.tracked:
            return
        oldest = next(iter(self._logs))
        del self._logs[oldest]
        self._out.record(Record(Kind.EVICTED, event=oldest[0], reason=Reason.TOO_MANY, note="Log"))

    def handle_logged(self, leader: PeerId, message: Logged) -> list[tuple[Way, Passing, int]]:
        """Note the progress of events that a rendezvous reports. Return those that are finished."""
        strange, ended = 0, list[tuple[Way, Passing, int]]()
        for each in message.answers:
            log = self._log_of(leader, (each.event, each.attribute))
            if log is None:
                strange += 1
            elif len(log.answered) < self._config.routes:
                log.answered[each.route] = count_of(each)
        for end in message.finished:
            way = (end.event, end.attribute)
            log = self._log_of(leader, way)
            if log is None:
                strange += 1
            else:
                del self._logs[way]
                ended.append((way, log.passing, log.hops))
        if strange:
            note = f"Logged: {strange} of events that are not tracked"
            self._out.record(Record(Kind.REJECTED, peer=leader, reason=Reason.STALE, note=note))
        return ended

    def _log_of(self, leader: PeerId, way: Way) -> _Log | None:
        log = self._logs.get(way)
        return None if log is None or log.leader != leader else log

    def tidy(self, now: float) -> None:
        """Forget events that are so old that every node would refuse them."""
        old = now - self._config.taken_for
        self._logs = {way: log for way, log in self._logs.items() if log.at > old}

    def answers_of(self, way: Way) -> dict[PeerId, Count]:
        """Return the routes that had answered the earlier rendezvous for an event that goes on here."""
        log = self._logs.get(way)
        return {} if log is None else log.answered

    def unfinished_of(self, leader: PeerId) -> list[tuple[str, Passing, int]]:
        """Return the events that a node led and did not finish."""
        return [(way[1], log.passing, log.hops) for way, log in self._logs.items() if log.leader == leader]


class WentBy(NamedTuple):
    """A recent event, and when it travelled down."""

    at: float
    way: Way
    passing: Passing
    hops: int
    leader: PeerId | None = None
    """The rendezvous that led it, if it was only tracked here."""


class Lately:
    """Buffers recent events, sent down here or only tracked here, for routes that come back.

    A route that was elsewhere is sent the events that went down here. If the rendezvous is gone before that,
    the trackers of its events have them: the next rendezvous is a tracker, or one hands them to it. If it is
    handed them after the route came back, it sends them on to that route as well.
    """

    def __init__(self, config: ContentConfig) -> None:
        self._for = config.lately
        self._most = config.waiting
        self._here: deque[WentBy] = deque(maxlen=config.waiting)
        self._elsewhere: dict[Way, WentBy] = {}
        self._back: dict[tuple[str, PeerId], float] = {}
        """Routes that were elsewhere, by attribute, and when they said so: the longest ago first."""

    def went_down(self, event: WentBy) -> None:
        """Buffer an event that went down here."""
        self._here.append(event)

    def finished_elsewhere(self, event: WentBy) -> None:
        """Buffer an event that was tracked here and is finished."""
        self._elsewhere.pop(event.way, None)
        self._elsewhere[event.way] = event
        if len(self._elsewhere) > self._most:
            del self._elsewhere[next(iter(self._elsewhere))]

    def came_back(self, attribute: str, route: PeerId, now: float) -> None:
        """Note that a route was elsewhere until now."""
        self._back.pop((attribute, route), None)
        self._back[attribute, route] = now

    def is_back(self, attribute: str, route: PeerId, now: float) -> bool:
        """Return whether a route came back recently."""
        at = self._back.get((attribute, route))
        return at is not None and at + self._for > now

    def here(self, attribute: str, now: float) -> list[WentBy]:
        """Return the recent events that went down here under an attribute."""
        return self._recent(self._here, attribute, now)

    def elsewhere(self, attribute: str, now: float) -> list[WentBy]:
        """Return the recent events under an attribute that went down elsewhere."""
        return self._recent(self._elsewhere.values(), attribute, now)

    def has(self, way: Way) -> bool:
        """Return whether an event was tracked here."""
        return way in self._elsewhere

    def led_by(self, leader: PeerId) -> list[str]:
        """Return the attributes of the events that were tracked here for one rendezvous."""
        return sorted({each.way[1] for each in self._elsewhere.values() if each.leader == leader})

    def tidy(self, now: float) -> None:
        """Forget events and returns that are no longer recent."""
        while self._here and self._here[0].at + self._for <= now:
            self._here.popleft()
        for way, event in list(self._elsewhere.items()):
            if event.at + self._for <= now:
                del self._elsewhere[way]
        for who, at in list(self._back.items()):
            if at + self._for <= now:
                del self._back[who]

    def _recent(self, some: Iterable[WentBy], attribute: str, now: float) -> list[WentBy]:
        return [each for each in some if each.way[1] == attribute and each.at + self._for > now]


class Successions:
    """Hands over finished events that were tracked here for a rendezvous that is gone.

    Unfinished events are sent on as events (`Trackers`). Finished ones need nothing more, except for routes
    that were away meanwhile. They are handed over as they were tracked, so that the next rendezvous has them
    for routes that come back. Nothing is handed over while the earlier rendezvous is there: it sends on its
    recent events itself.
    """

    def __init__(self, ours: PeerId, reach: Reach, claims: Claims, lately: Lately) -> None:
        self._ours = ours
        self._reach = reach
        self._claims = claims
        self._lately = lately
        self._handed: dict[Way, PeerId] = {}

    def hand_over(self, attribute: str, now: float) -> None:
        """Hand the node that claimed an attribute the events tracked for an earlier rendezvous that is gone.

        They are also handed over if the claimant led them itself, since it may be back without its memory.
        """
        heir = self._claims.claimant(attribute)
        if heir is None or heir.peer == self._ours:
            return
        some = [
            event for event in self._lately.elsewhere(attribute, now) if self._is_wanted(event, heir.peer)
        ]
        for start in range(0, len(some), LOGGED):
            part = some[start : start + LOGGED]
            for _, way, passing, hops, _ in part:
                self._handed[way] = heir.peer
                self._reach.send(heir, Log(attribute, passing.unit, passing.card, hops))
            self._reach.send(heir, Logged((), tuple(Tracked(*event.way) for event in part)))

    def handle_link_down(self, peer: PeerId, now: float) -> None:
        """Hand the events that a lost rendezvous led to the nodes that have claimed its attributes since."""
        self._handed = {way: heir for way, heir in self._handed.items() if heir != peer}
        for attribute in self._lately.led_by(peer):
            heir = self._claims.claimant(attribute)
            if heir is not None and heir.peer != peer:
                self.hand_over(attribute, now)

    def tidy(self) -> None:
        """Forget hand-overs of events that are not tracked any more."""
        self._handed = {way: heir for way, heir in self._handed.items() if self._lately.has(way)}

    def _is_wanted(self, event: WentBy, heir: PeerId) -> bool:
        leader = event.leader
        is_gone = leader is not None and (leader == heir or not self._reach.is_up(leader))
        return is_gone and self._handed.get(event.way) != heir
