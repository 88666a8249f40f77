"""When an event first reaches anybody but its sender, with relays and without.

Only the sender has an event until somebody gets it. Without relays both must be online at once; with
relays it is enough that somebody else comes online (Schichtholz 2024, section 6.3).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from linnet.lab.relays.attendance import Attendance, by_presence
from linnet.lab.relays.chat_arrays import FAR, I64, next_other, padded

UNDELIVERED = -1


class Deliveries(NamedTuple):
    """The first delivery of each event in time order; `UNDELIVERED` if there is none by the end."""

    p2p: I64
    relays: I64


def first_deliveries(attendance: Attendance) -> Deliveries:
    """Of each event, the first instant at which somebody else has it."""
    # Who is not alone delivers at once, either way.
    alone = attendance.alone
    p2p, relays = attendance.ordered.chat.ts.copy(), attendance.ordered.chat.ts.copy()
    starts = padded(attendance.periods.start)
    place = attendance.started[alone]
    arrival = starts[place]
    p2p[alone] = _meetings(attendance, arrival)
    member = np.append(attendance.periods.member, np.int32(-1))
    own = np.flatnonzero(member[place] == attendance.ordered.chat.user[alone])
    arrival[own] = starts[next_other(attendance.periods.member)[place[own]]]
    relays[alone] = np.where(arrival == FAR, UNDELIVERED, arrival)
    return Deliveries(p2p, relays)


def _meetings(attendance: Attendance, arrival: I64) -> I64:
    """When the senders who are alone first meet anybody, given the next arrival after each message."""
    # The own next period begins after the end of this one, so an arrival within it is another's.
    here = arrival < attendance.online_until[attendance.alone]
    times = np.where(here, arrival, UNDELIVERED)
    late = np.flatnonzero(~here)
    if len(late):
        turn = attendance.turn[attendance.ordered.rank[attendance.alone[late]]]
        times[late] = _later_meetings(attendance, turn)
    return times


def _later_meetings(attendance: Attendance, turn: I64) -> I64:
    """The first meeting of the same member in any period after each of these, which are places by member."""
    periods, member = attendance.periods, np.append(attendance.presence.member, np.int32(-1))
    following = padded(periods.start)[periods.begun]
    arrival = np.where(following < periods.end, following, UNDELIVERED)
    met = by_presence(attendance, np.where(periods.company > 1, periods.start, arrival))
    # Each period points at itself if it has a meeting, else at the nearest later one that has.
    none = len(met)
    pointer = np.where(met == UNDELIVERED, none, np.arange(none))
    pointer = np.append(np.minimum.accumulate(pointer[::-1])[::-1], none)
    found = pointer[turn + 1]
    return np.where(member[found] == member[turn], np.append(met, UNDELIVERED)[found], UNDELIVERED)
