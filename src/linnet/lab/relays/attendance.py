"""A presence laid over a chat: who is online when something is sent, and where messages fall in periods.

What relays and direct delivery both need is found here once for each presence, by sorting and by
binary search; nothing is done for each pair of message and member. Periods are in the order of their
starts (*arrival order*), as what is asked in the order of time is answered five times as fast.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from linnet.lab.errors import LabError
from linnet.lab.relays.chat_arrays import I32, I64, ChatIndex
from linnet.lab.relays.presence import Presence


class Periods(NamedTuple):
    """Online periods in arrival order."""

    order: I64
    """The place of each in the presence, which is by member."""
    member: I32
    start: I64
    end: I64
    prior_end: I64
    """End of the member's period before; -1 if there is none."""
    at_start: I64
    """Place of the first message at or after the start."""
    at_prior_end: I64
    """Place of the first message at or after the prior end: what the member has missed begins there."""
    begun: I64
    """How many periods have begun at the start: the place of the first that begins later."""
    company: I64
    """How many are online at the start, the member included."""


class Attendance(NamedTuple):
    """A chat and a presence together; messages are places in time order."""

    ordered: ChatIndex
    presence: Presence
    periods: Periods
    at_ends: I64
    """For the ends of all periods in order, the place of the first message at or after it."""
    turn: I64
    """The sender's period of each message, as a place in the presence; in member order."""
    online_until: I64
    """The end of the sender's period of each message."""
    started: I64
    """Periods begun by the time of each message."""
    alone: I64
    """Messages whose sender is the only one online."""


def attend(index: ChatIndex, presence: Presence) -> Attendance:
    """Lay a presence over a chat; a member who sends must be online."""
    member, start, end = presence
    order = np.argsort(start, kind="stable")
    ends = np.sort(end, kind="stable")
    prior = np.concatenate(([-1], end[:-1]))
    prior[1:][member[1:] != member[:-1]] = -1
    prior = prior[order]
    turn = running(_first_own(index, presence), len(index.ts)) - 1
    if (member[turn] != index.user).any() or (end[turn] <= index.ts).any():
        raise LabError("a member sends while it is offline; add its sends to its online periods")
    ts = index.chat.ts
    return assemble(index, presence, order, prior, np.searchsorted(ts, prior), ends, turn)


def assemble(
    index: ChatIndex,
    presence: Presence,
    order: I64,
    prior_end: I64,
    at_prior_end: I64,
    ends: I64,
    turn: I64,
    at_ends: I64 | None = None,
) -> Attendance:
    """What follows from periods in arrival order, their ends in order, and the periods of messages."""
    ts, start = index.chat.ts, presence.start[order]
    at_start = np.searchsorted(ts, start)
    at_ends = np.searchsorted(ts, ends) if at_ends is None else at_ends
    begun = _places_behind(start)
    company = begun - np.searchsorted(ends, start, side="right")
    periods = Periods(
        order,
        presence.member[order],
        start,
        presence.end[order],
        prior_end,
        at_start,
        at_prior_end,
        begun,
        company,
    )
    started = running(at_start, len(ts))
    alone = np.flatnonzero(started - running(at_ends, len(ts)) == 1)
    online_until = presence.end[turn][index.rank]
    return Attendance(index, presence, periods, at_ends, turn, online_until, started, alone)


def running(places: I64, count: int) -> I64:
    """For each of so many places, how many of the given ones lie at or before it."""
    return np.cumsum(np.bincount(places, minlength=count + 1)[:count])


def by_presence(attendance: Attendance, values: I64) -> I64:
    """Values of periods in arrival order, in the order of the presence."""
    found = np.empty_like(values)
    found[attendance.periods.order] = values
    return found


def _first_own(index: ChatIndex, presence: Presence) -> I64:
    """Member-order place of each period's first message, or of the next one if it has none."""
    span = int(index.chat.ts[-1]) + 2
    sent = index.user * np.int64(span) + index.ts
    return np.searchsorted(sent, presence.member * np.int64(span) + np.minimum(presence.start, span - 1))


def _places_behind(ascending: I64) -> I64:
    """For each value of an ascending array the place behind the last one that is equal."""
    bounds = np.append(np.flatnonzero(ascending[1:] != ascending[:-1]) + 1, len(ascending))
    return np.repeat(bounds, np.diff(bounds, prepend=0))
