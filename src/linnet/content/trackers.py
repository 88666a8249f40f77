"""The ledger of an event at its rendezvous is held by others as well (Agostinho 2021, section 3.8).

The nodes closest to the attribute's key, of which the next rendezvous will be one, are told of each event
before its publisher is told that it was taken, then which routes have answered, and in the end that it is
finished: the latter two for many events at once, twice a second. Who hears of an answer too late sends an
event once more to a route that has it, no more. If the rendezvous is gone they send what was unfinished to
the next one; where that is a tracker itself, it goes on with those who have not answered. What is finished
is forgotten.
"""

from __future__ import annotations

from linnet.content.backups import Backups
from linnet.content.branches import Count, Way
from linnet.content.config import ContentConfig
from linnet.content.messages import LOGGED, Answered, Log, Logged, Tracked
from linnet.content.passing import Passing
from linnet.content.reach import Reach
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
