"""What members receive first in each of their online periods when relays keep everything for them."""

from __future__ import annotations

import numpy as np

from linnet.lab.relays.attendance import Attendance
from linnet.lab.relays.chat_arrays import FAR, I64, padded

NOTHING = -1
"""Nothing is received in the period."""


def first_by_others(attendance: Attendance, place: I64) -> I64:
    """For each period, when somebody else says something at or after a place of the chat; or `FAR`."""
    user = np.append(attendance.ordered.chat.user, np.int32(-1))
    own = user[place] == attendance.presence.member
    found = np.where(own, attendance.ordered.next_other[place], place)
    return padded(attendance.ordered.chat.ts)[found]


def first_relayed(attendance: Attendance) -> I64:
    """The first reception in each online period with relays; `NOTHING` if there is none.

    Whatever others sent since the member was online before has its first instant online at the start;
    what they send during the period is received at once.
    """
    _, start, end = attendance.presence
    sent = first_by_others(attendance, attendance.at_prior_end)
    received = np.maximum(start, sent)
    return np.where((sent < FAR) & (received < end), received, NOTHING)
