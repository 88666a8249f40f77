"""What it means that an event arrived although sender and receiver were never online together.

The definitions of Schichtholz 2024, section 3.1 (asynchronous delivery, ASAP delivery), as
predicates over a merged log. The formulas say "there are a sender and a receiver", and hold for all pairs
of which the premise does not; so here the pair is given, and the premise must hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from math import inf
from typing import NamedTuple

from linnet.sim.merged_log import OFFLINE, ONLINE, RECEIVE, SEND, Entry


class Interval(NamedTuple):
    """From a time on, up to but not including another."""

    start: float
    end: float

    def holds(self, time: float) -> bool:
        """Whether a time lies in it."""
        return self.start <= time < self.end


class Delivery(StrEnum):
    """How an event came to one receiver."""

    ASAP = "asap"
    """In the first time that the receiver was there and the sender not."""
    ASYNCHRONOUS = "asynchronous"
    """In such a time, but not in the first."""
    SYNCHRONOUS = "synchronous"
    """While both were there."""
    NONE = "none"


def online_intervals(log: Sequence[Entry], user: str) -> list[Interval]:
    """When somebody was online, by the lines that say so.

    Who is first seen going was there from the start, and so is who never comes or goes; the last
    interval is open if no line ends it.
    """
    changes = [entry for entry in log if entry.user == user and entry.action in (ONLINE, OFFLINE)]
    since: float | None = -inf if not changes or changes[0].action == OFFLINE else None
    found: list[Interval] = []
    for change in changes:
        if change.action == ONLINE:
            since = change.time if since is None else since
        elif since is not None:
            found.append(Interval(since, change.time))
            since = None
    return found if since is None else [*found, Interval(since, inf)]


def apart(log: Sequence[Entry], sender: str, receiver: str, after: float) -> list[Interval]:
    """The longest times after a moment in which the receiver is online and the sender is not."""
    away = _complement(online_intervals(log, sender))
    found = [
        Interval(max(here.start, gone.start, after), min(here.end, gone.end))
        for here in online_intervals(log, receiver)
        for gone in away
    ]
    return sorted(interval for interval in found if interval.start < interval.end)


def delivery(log: Sequence[Entry], event: int, sender: str, receiver: str) -> Delivery:
    """How an event came to a receiver, judged by the first time that it did."""
    sent = _first(log, SEND, sender, event)
    received = None if sent is None else _first(log, RECEIVE, receiver, event, sent)
    if sent is None or received is None:
        return Delivery.NONE
    times = apart(log, sender, receiver, sent)
    if _is_online(log, receiver, sent) or not any(each.holds(received) for each in times):
        return Delivery.SYNCHRONOUS
    return Delivery.ASAP if times[0].holds(received) else Delivery.ASYNCHRONOUS


def async_delivered(log: Sequence[Entry], event: int, sender: str, receiver: str) -> bool:
    """Asynchronous: the receiver was offline when it was sent, and got it while the sender was."""
    return delivery(log, event, sender, receiver) in (Delivery.ASAP, Delivery.ASYNCHRONOUS)


def asap_delivered(log: Sequence[Entry], event: int, sender: str, receiver: str, within: float = inf) -> bool:
    """As soon as possible: and that in the first such time, at most so many seconds after it began."""
    if delivery(log, event, sender, receiver) is not Delivery.ASAP:
        return False
    sent = _first(log, SEND, sender, event) or 0.0
    received = _first(log, RECEIVE, receiver, event, sent) or 0.0
    return received - apart(log, sender, receiver, sent)[0].start <= within


def _first(log: Sequence[Entry], action: str, user: str, event: int, after: float = -inf) -> float | None:
    times = (e.time for e in log if (e.action, e.user, e.event) == (action, user, event) and e.time >= after)
    return min(times, default=None)


def _is_online(log: Sequence[Entry], user: str, time: float) -> bool:
    return any(interval.holds(time) for interval in online_intervals(log, user))


def _complement(intervals: Sequence[Interval]) -> list[Interval]:
    """The times between intervals that are in order."""
    ends = [-inf, *(interval.end for interval in intervals)]
    starts = [*(interval.start for interval in intervals), inf]
    return [Interval(end, start) for end, start in zip(ends, starts, strict=True) if end < start]
