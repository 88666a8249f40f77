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

from typing import NamedTuple

import numpy as np

from linnet.lab.relays.attendance import Attendance
from linnet.lab.relays.chat_arrays import I32, I64, Mask, padded
from linnet.lab.relays.range_max import range_max
from linnet.lab.relays.returns import NOTHING, first_by_others


class Returns(NamedTuple):
    """Periods of members who have been online before, by start; one place more at the end for none."""

    start: I64
    member: I32
    last: I64
    """The member's last message before."""


def first_pushes(attendance: Attendance, margin: int) -> I64:
    """The first push in each online period, where members are online for a margin around what they send.

    `NOTHING` if there is none. The presence must be that of `periods_around` with the same margin.
    """
    first = pushed_or_waiting(attendance)
    start, end = attendance.presence.start, attendance.presence.end
    asking = np.flatnonzero(first > start)
    limit = np.minimum(first[asking], end[asking])
    earliest = np.maximum(start[asking] - margin + 1, attendance.prior_end[asking])
    returns = _returns(attendance)
    place = np.searchsorted(returns.start, earliest)
    # One return after the other for all periods at once. No member returns twice in a window that is
    # shorter than the margin, so there are at most as many rounds as members.
    while len(asking):
        within = returns.start[place] < limit
        asking, place, limit = asking[within], place[within], limit[within]
        unmet = _unmet(attendance, asking, returns, place, margin)
        first[asking[unmet]] = np.maximum(start[asking[unmet]], returns.start[place[unmet]])
        asking, place, limit = asking[~unmet], place[~unmet] + 1, limit[~unmet]
    return np.where(first < end, first, NOTHING)


def pushed_or_waiting(attendance: Attendance) -> I64:
    """For each period the first message of another in it, or its start if a sender online has waited for it.

    A time at or after the end, or `FAR`, if neither is. Holds for any presence.
    """
    start = attendance.presence.start
    first = first_by_others(attendance, attendance.at_start)
    low, high = attendance.at_prior_end, attendance.at_start
    # The member itself sends nothing in [p, a). The last message there is the likeliest to reach a.
    asking = np.flatnonzero((first > start) & (attendance.company > 1) & (low < high))
    online_until = attendance.presence.end[attendance.period]
    reaching = online_until[high[asking] - 1] > start[asking]
    first[asking[reaching]] = start[asking[reaching]]
    asking = asking[~reaching]
    waiting = range_max(online_until, low[asking], high[asking]) > start[asking]
    first[asking[waiting]] = start[asking[waiting]]
    return first


def _returns(attendance: Attendance) -> Returns:
    member, start, _ = attendance.presence
    back = np.flatnonzero(attendance.prior_end >= 0)
    back = back[np.argsort(start[back], kind="stable")]
    last = attendance.ordered.ts[attendance.first_own[back] - 1]
    return Returns(padded(start[back]), np.append(member[back], np.int32(-1)), padded(last))


def _unmet(attendance: Attendance, period: I64, returns: Returns, place: I64, margin: int) -> Mask:
    """Whether the member of each period was offline from the returner's last message until that left."""
    member, start, _ = attendance.presence
    said = returns.last[place]
    left = said + margin
    missed: Mask = (said >= attendance.prior_end[period]) & (left <= start[period])
    # A message before the member's last period: the returner must have left before that began.
    prior_start = start[np.maximum(period - 1, 0)]
    doubtful = np.flatnonzero((said < attendance.prior_end[period]) & (left <= prior_start))
    missed[doubtful] = _offline(attendance, member[period[doubtful]], said[doubtful], left[doubtful])
    missed &= returns.member[place] != member[period]
    return missed


def _offline(attendance: Attendance, member: I32, since: I64, until: I64) -> Mask:
    """Whether each member is offline on all of [since, until)."""
    of, start, end = attendance.presence
    span = np.int64(int(end.max()) + 1)
    begun = np.searchsorted(of * span + start, member * span + since, side="right")
    before = np.maximum(begun - 1, 0)
    gone: Mask = (begun == 0) | (of[before] != member) | (end[before] <= since)
    behind = np.minimum(begun, len(of) - 1)
    gone &= (begun == len(of)) | (of[behind] != member) | (start[behind] >= until)
    return gone
