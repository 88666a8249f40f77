"""When an event first reaches anybody but its sender, with relays and without.

Only the sender has an event until somebody gets it. Without relays both must be online at once; with
relays it is enough that somebody else comes online (Schichtholz 2024, section 6.3).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from linnet.lab.relays.attendance import Attendance
from linnet.lab.relays.chat_arrays import FAR, I64

UNDELIVERED = -1


class Deliveries(NamedTuple):
    """The first delivery of each event in time order; `UNDELIVERED` if there is none by the end."""

    p2p: I64
    relays: I64


def first_deliveries(attendance: Attendance) -> Deliveries:
    """Of each event, the first instant at which somebody else has it."""
    # Who is not alone delivers at once, either way.
    alone = np.flatnonzero(attendance.online == 1)
    p2p, relays = attendance.ordered.chat.ts.copy(), attendance.ordered.chat.ts.copy()
    p2p[alone] = _meetings(attendance, alone)
    relays[alone] = _arrivals(attendance, alone)
    return Deliveries(p2p, relays)


def _arrivals(attendance: Attendance, alone: I64) -> I64:
    """The next arrival of anybody else after each of these messages."""
    arrivals, place = attendance.arrivals, attendance.started[alone]
    own = arrivals.member[place] == attendance.ordered.chat.user[alone]
    time = arrivals.start[np.where(own, arrivals.next_other[place], place)]
    return np.where(time == FAR, UNDELIVERED, time)


def _meetings(attendance: Attendance, alone: I64) -> I64:
    """When the lonely senders of these messages first meet anybody."""
    period = attendance.period[alone]
    arrival = attendance.arrivals.start[attendance.started[alone]]
    # The own next period begins after the end of this one, so an arrival within it is another's.
    here = arrival < attendance.presence.end[period]
    times = np.where(here, arrival, UNDELIVERED)
    late = np.flatnonzero(~here)
    times[late] = _later_meetings(attendance, period[late])
    return times


def _later_meetings(attendance: Attendance, period: I64) -> I64:
    """The first meeting of the same member in any period after each of these."""
    member, start, end = attendance.presence
    arrival = np.where(attendance.next_start < end, attendance.next_start, UNDELIVERED)
    met = np.append(np.where(attendance.company > 1, start, arrival), UNDELIVERED)
    # Each period points at itself if it has a meeting, else at the nearest later one that has.
    none = len(member)
    pointer = np.where(met == UNDELIVERED, none, np.arange(none + 1))
    pointer = np.minimum.accumulate(pointer[::-1])[::-1]
    found = pointer[period + 1]
    same = np.append(member, np.int32(-1))[found] == member[period]
    return np.where(same, met[found], UNDELIVERED)
