"""The ledger of an event at its rendezvous is held by others as well (Agostinho 2021, section 3.8).

The nodes closest to the attribute's key, of which the next rendezvous will be one, are told of each event
before its publisher is told that it was taken, then which routes have answered, and in the end that it is
finished: the latter two for many events at once, twice a second. Who hears of an answer too late sends an
event once more to a route that has it, no more. If the rendezvous is gone they send what was unfinished to
the next one; where that is a tracker itself, it goes on with those who have not answered. What is finished
is kept for a short while, for those who were away meanwhile and come back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from linnet.content.branch_ledger import Count, Way
from linnet.content.config import ContentConfig
from linnet.content.filter_backup import Backups
from linnet.content.messages import LOGGED, Answered, Log, Logged, Tracked
from linnet.content.passing import Passing
from linnet.content.reach import Reach
from linnet.content.rendezvous import Claims
from linnet.core.ids import Contact, PeerId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.machine.outbox import Outbox
from linnet.trace.records import Kind, Record

_TOLD = 0.5
"""Seconds for which what is to be told is gathered."""


class LogDue(Timer, frozen=True, gc=False):
    """What was gathered for trackers is to be told to them."""


class _Log:
    """What the rendezvous told of an event."""

    __slots__ = ("answered", "at", "hops", "leader", "passing")

    def __init__(self, leader: PeerId, passing: Passing, hops: int, at: float) -> None:
        self.at = at
        self.leader = leader
        self.passing = passing
        self.hops = hops
        self.answered: dict[PeerId, Count] = {}


class _Untold:
    """What a tracker is to be told."""

    __slots__ = ("answers", "ended")

    def __init__(self) -> None:
        self.answers: dict[tuple[Way, PeerId], Count] = {}
        self.ended: dict[Way, None] = {}


class Trackers:
    """Events that this node leads, and those that it tracks for others."""

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
        """Have others track an event of which this node is the rendezvous."""
        if not self._config.reliable or way in self._led:
            return
        trackers = self._backups.around(way[1], now) if self._config.backups else ()
        if not trackers:
            return
        self._led[way] = trackers
        for contact in trackers:
            self._reach.send(contact, Log(way[1], passing.unit, passing.card, hops))

    def note_answer(self, way: Way, route: PeerId, count: Count) -> None:
        """Note for trackers that a route has answered for all below it."""
        is_first = not self._untold
        for contact in self._led.get(way, ()):
            self._untold.setdefault(contact.peer, _Untold()).answers[way, route] = count
        self._set_timer(is_first)

    def note_end(self, way: Way) -> None:
        """Note for trackers that an event is finished."""
        self._logs.pop(way, None)
        is_first = not self._untold
        for contact in self._led.pop(way, ()):
            self._untold.setdefault(contact.peer, _Untold()).ended[way] = None
        self._set_timer(is_first)

    def _set_timer(self, is_first: bool) -> None:
        if is_first and self._untold:
            self._out.set_timer(_TOLD, LogDue())

    def tell_trackers(self) -> None:
        """Tell all trackers how far events are."""
        untold, self._untold = self._untold, {}
        for tracker, news in untold.items():
            open_ = [each for each in news.answers.items() if each[0][0] not in news.ended]
            told = [Answered(*way, route, *count) for (way, route), count in open_]
            ends = [Tracked(*way) for way in news.ended]
            for start in range(0, max(len(told), len(ends)), LOGGED):
                some = slice(start, start + LOGGED)
                self._reach.answer(tracker, Logged(tuple(told[some]), tuple(ends[some])))

    # At the others.

    def add_log(self, leader: PeerId, way: Way, passing: Passing, hops: int, now: float) -> None:
        """Track an event of a rendezvous; the oldest is given up where there are too many."""
        self._logs[way] = _Log(leader, passing, hops, now)
        if len(self._logs) <= self._config.tracked:
            return
        oldest = next(iter(self._logs))
        del self._logs[oldest]
        self._out.record(Record(Kind.EVICTED, event=oldest[0], reason=Reason.TOO_MANY, note="Log"))

    def handle_logged(self, leader: PeerId, message: Logged) -> list[tuple[Way, Passing, int]]:
        """Note how far events are that a rendezvous tells of; those that are finished."""
        strange, ended = 0, list[tuple[Way, Passing, int]]()
        for each in message.answers:
            log = self._log_of(leader, (each.event, each.attribute))
            if log is None:
                strange += 1
            elif len(log.answered) < self._config.routes:
                log.answered[each.route] = Count(each.delivered, each.missed, each.again, each.matches)
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
        """Forget what is too old to be taken by anybody."""
        old = now - self._config.taken_for
        self._logs = {way: log for way, log in self._logs.items() if log.at > old}

    def answers_of(self, way: Way) -> dict[PeerId, Count]:
        """The routes that have answered the rendezvous before, of an event that goes on here."""
        log = self._logs.get(way)
        return {} if log is None else log.answered

    def unfinished_of(self, leader: PeerId) -> list[tuple[str, Passing, int]]:
        """What a node led and did not finish."""
        return [(way[1], log.passing, log.hops) for way, log in self._logs.items() if log.leader == leader]


class WentBy(NamedTuple):
    """An event, and when it went by."""

    at: float
    way: Way
    passing: Passing
    hops: int
    leader: PeerId | None = None
    """Who led it, of what was tracked here."""


class Lately:
    """What went down here, what went down elsewhere and was tracked here, and who came back.

    A route that was elsewhere is sent what went down here. If the rendezvous is gone before that, those who
    tracked its events have them: the next rendezvous is one of them, or is handed them by one. What it is
    handed after a route came back goes to that route as well.
    """

    def __init__(self, config: ContentConfig) -> None:
        self._for = config.lately
        self._most = config.waiting
        self._here: deque[WentBy] = deque(maxlen=config.waiting)
        self._elsewhere: dict[Way, WentBy] = {}
        self._back: dict[tuple[str, PeerId], float] = {}
        """Routes that were elsewhere, by attribute, and when they said so: the longest ago first."""

    def went_down(self, event: WentBy) -> None:
        """An event went down here."""
        self._here.append(event)

    def finished_elsewhere(self, event: WentBy) -> None:
        """All that could be done for an event that is tracked here was done."""
        self._elsewhere.pop(event.way, None)
        self._elsewhere[event.way] = event
        if len(self._elsewhere) > self._most:
            del self._elsewhere[next(iter(self._elsewhere))]

    def came_back(self, attribute: str, route: PeerId, now: float) -> None:
        """A route was elsewhere until now."""
        self._back.pop((attribute, route), None)
        self._back[attribute, route] = now

    def is_back(self, attribute: str, route: PeerId, now: float) -> bool:
        """Whether a route was elsewhere until lately."""
        at = self._back.get((attribute, route))
        return at is not None and at + self._for > now

    def here(self, attribute: str, now: float) -> list[WentBy]:
        """What went down here under an attribute."""
        return self._recent(self._here, attribute, now)

    def elsewhere(self, attribute: str, now: float) -> list[WentBy]:
        """What went down elsewhere under an attribute."""
        return self._recent(self._elsewhere.values(), attribute, now)

    def has(self, way: Way) -> bool:
        """Whether an event was tracked here."""
        return way in self._elsewhere

    def led_by(self, leader: PeerId) -> list[str]:
        """The attributes of what was tracked here for one node."""
        return sorted({each.way[1] for each in self._elsewhere.values() if each.leader == leader})

    def tidy(self, now: float) -> None:
        """Forget what is not so late any more."""
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
    """What was handed to whom, of events that were tracked here for a rendezvous that is gone.

    What was not finished is sent on as an event (`content.event_tracking`). What was finished is not: all
    that there was to do for it was done, but for those who were away meanwhile. It is handed over as it was
    tracked, so that the next rendezvous has it for who comes back. Nothing has to be handed over while the
    one before is there: it sends on what came to it lately itself.
    """

    def __init__(self, ours: PeerId, reach: Reach, claims: Claims, lately: Lately) -> None:
        self._ours = ours
        self._reach = reach
        self._claims = claims
        self._lately = lately
        self._handed: dict[Way, PeerId] = {}

    def hand_over(self, attribute: str, now: float) -> None:
        """Hand who claimed an attribute what was tracked for one who is gone, or is this one itself."""
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
        """Hand what a node led that is gone to who has claimed it since."""
        self._handed = {way: heir for way, heir in self._handed.items() if heir != peer}
        for attribute in self._lately.led_by(peer):
            heir = self._claims.claimant(attribute)
            if heir is not None and heir.peer != peer:
                self.hand_over(attribute, now)

    def tidy(self) -> None:
        """Forget what is not tracked any more."""
        self._handed = {way: heir for way, heir in self._handed.items() if self._lately.has(way)}

    def _is_wanted(self, event: WentBy, heir: PeerId) -> bool:
        leader = event.leader
        is_gone = leader is not None and (leader == heir or not self._reach.is_up(leader))
        return is_gone and self._handed.get(event.way) != heir
