"""What members receive first in each of their online periods when relays keep everything for them."""

from __future__ import annotations

import numpy as np

from linnet.lab.relays.attendance import Attendance
from linnet.lab.relays.chat_arrays import I64

NOTHING = -1
"""Nothing is received in the period."""


def first_by_others(attendance: Attendance, place: I64) -> I64:
    """For each period, when somebody else says something at or after a place of the chat; or `FAR`."""
    own = np.flatnonzero(attendance.ordered.said_by[place] == attendance.periods.member)
    found = place.copy()
    found[own] = attendance.ordered.next_other[place[own]]
    return attendance.ordered.said_at[found]


def first_relayed(attendance: Attendance) -> I64:
    """The first reception in each online period, in arrival order, with relays; `NOTHING` if there is none.

    Whatever others sent since the member was online before has its first instant online at the start;
    what they send during the period is received at once.
    """
    periods = attendance.periods
    received = np.maximum(periods.start, first_by_others(attendance, periods.at_prior_end))
    return np.where(received < periods.end, received, NOTHING)
