"""What members receive first in each of their online periods when senders deliver by themselves.

An event is pushed to a member at the first instant, at its sending or after it, at which its sender and
the member are both online. So the first push in the period [a, b) of a member r whose last period ended
at p is the earliest of three:

1. the first message that another sends in [a, b);
2. a itself, if somebody has been online from a message in [p, a) until after a;
3. the return at x of somebody s who left before, without meeting r after its last message.

In the third case x < a is possible (s comes back while r is offline, and says nothing before a). Where
people are online for a margin around what they send, s says something a margin after its return, hence
there are few returns to look at: those after a - margin and before the first message of another.
"""

from __future__ import annotations

from itertools import count
from typing import NamedTuple

import numpy as np

from linnet.lab.relays.attendance import Attendance
from linnet.lab.relays.chat_arrays import I32, I64, Mask, by_member, padded
from linnet.lab.relays.presence import Presence
from linnet.lab.relays.range_max import range_max
from linnet.lab.relays.returns import NOTHING, first_by_others

PATIENCE = 8
"""Rounds after which those are sorted out that cannot find anything."""


class Returns(NamedTuple):
    """Periods of members who have been online before, in arrival order; one place more stands for none."""

    start: I64
    member: I32
    left: I64
    """When the member was online before."""


class Timetable(NamedTuple):
    """The periods of all members one member after the other, on one long day."""

    span: int
    """Milliseconds for each member."""
    starts: I64
    """One more at the end for none."""
    ends: I64


class Asking(NamedTuple):
    """Periods that may hear of a return before anything else."""

    period: I64
    place: I64
    """The next return to look at."""
    limit: I64
    """When something is pushed at the latest, or the end."""

    def only(self, kept: Mask) -> Asking:
        """Some of them."""
        return Asking(self.period[kept], self.place[kept], self.limit[kept])


def first_pushes(attendance: Attendance, margin: int, patience: int = PATIENCE) -> I64:
    """The first push in each online period, in arrival order; `NOTHING` if there is none.

    The presence must be that of `periods_around` with this margin. Patience changes the time it takes only.
    """
    periods, first = attendance.periods, pushed_or_waiting(attendance)
    returns = _returns(attendance)
    asking, timetable = _asking(attendance, returns, first, margin), _timetable(attendance.presence)
    # One return after the other for all periods at once. No member returns twice in a window that is
    # shorter than the margin, so there are at most as many rounds as members.
    for turn in count(1):
        if not len(asking.period):
            break
        if turn == patience:
            asking = _hopeful(attendance, asking, returns, margin)
        unmet = _unmet(attendance, timetable, asking, returns, margin)
        heard, back = asking.period[unmet], returns.start[asking.place[unmet]]
        first[heard] = np.maximum(periods.start[heard], back)
        left = asking.only(~unmet)
        asking = _within(returns, left._replace(place=left.place + 1))
    return np.where(first < periods.end, first, NOTHING)


def pushed_or_waiting(attendance: Attendance) -> I64:
    """For each period the first message of another in it, or its start if a sender online has waited for it.

    A time at or after the end, or `FAR`, if neither is. Holds for any presence.
    """
    periods, online_until = attendance.periods, attendance.online_until
    first = first_by_others(attendance, periods.at_start)
    low, high = periods.at_prior_end, periods.at_start
    # The member itself sends nothing in [p, a). The last message there is the likeliest to reach a.
    asking = np.flatnonzero((first > periods.start) & (periods.company > 1) & (low < high))
    reaching = online_until[high[asking] - 1] > periods.start[asking]
    first[asking[reaching]] = periods.start[asking[reaching]]
    asking = asking[~reaching]
    waiting = range_max(online_until, low[asking], high[asking]) > periods.start[asking]
    first[asking[waiting]] = periods.start[asking[waiting]]
    return first


def _returns(attendance: Attendance) -> Returns:
    periods = attendance.periods
    back = np.flatnonzero(periods.prior_end >= 0)
    member = np.append(periods.member[back], np.int32(-1))
    return Returns(padded(periods.start[back]), member, padded(periods.prior_end[back]))


def _asking(attendance: Attendance, returns: Returns, first: I64, margin: int) -> Asking:
    """Periods in whose window there is any return, each with the first one."""
    periods = attendance.periods
    period = np.flatnonzero(first > periods.start)
    start = periods.start[period]
    earliest = np.maximum(start - margin + 1, periods.prior_end[period])
    place = np.searchsorted(returns.start, earliest)
    limit = np.minimum(first[period], periods.end[period])
    # Most often the only one is the member's own.
    place += returns.member[place] == periods.member[period]
    return _within(returns, Asking(period, place, limit))


def _hopeful(attendance: Attendance, asking: Asking, returns: Returns, margin: int) -> Asking:
    """Periods in whose window there is anybody who left long enough before or after the member did.

    Where a crowd comes together every day everybody has met everybody, and no return is worth a look.
    """
    period, stop = asking.period, np.searchsorted(returns.start, asking.limit)
    before = attendance.periods.order[period] - 1
    latest = range_max(returns.left, asking.place, stop)
    earliest = -range_max(-returns.left, asking.place, stop)
    hopeful = latest - margin >= attendance.periods.prior_end[period]
    # Without a period before, the first condition holds, and the place of another member does no harm.
    return asking.only(hopeful | (earliest <= attendance.presence.start[before]))


def _within(returns: Returns, asking: Asking) -> Asking:
    return asking.only(returns.start[asking.place] < asking.limit)


def _unmet(
    attendance: Attendance, timetable: Timetable, asking: Asking, returns: Returns, margin: int
) -> Mask:
    """Whether the member was offline from the returner's last message until that left."""
    periods, period = attendance.periods, asking.period
    left = returns.left[asking.place]
    said, member = left - margin, periods.member[period]
    other: Mask = returns.member[asking.place] != member
    fresh = said >= periods.prior_end[period]
    missed: Mask = other & fresh & (left <= periods.start[period])
    # A message before the member's last period: the returner must have left before that began.
    older = np.flatnonzero(other & ~fresh)
    before = periods.order[period[older]] - 1
    older = older[left[older] <= attendance.presence.start[before]]
    missed[older] = _offline(timetable, member[older], said[older], left[older])
    return missed


def _timetable(presence: Presence) -> Timetable:
    """A day of its own for each member, long enough for all times."""
    span = int(presence.end.max(initial=0)) + 1
    day = presence.member * np.int64(span)
    return Timetable(span, padded(day + presence.start), day + presence.end)


def _offline(timetable: Timetable, member: I32, since: I64, until: I64) -> Mask:
    """Whether each member is offline on all of [since, until)."""
    # One member after the other: a search that ends near the last one takes a third of the time.
    order = by_member(member)
    day = member[order] * np.int64(timetable.span)
    ending = np.searchsorted(timetable.ends, day + since[order], side="right")
    offline = np.empty(len(member), dtype=np.bool_)
    offline[order] = timetable.starts[ending] >= day + until[order]
    return offline
