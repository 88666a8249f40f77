"""First pushes for any presence: each member's meetings with all others, one member after the other.

This takes members times periods steps, where `linnet.lab.relays.pushes` needs about one for each period, but
it presumes nothing about when people are online. Memory is that of a few arrays over all periods.
"""

from __future__ import annotations

import numpy as np

from linnet.lab.relays.attendance import Attendance, by_presence
from linnet.lab.relays.chat_arrays import I64, padded
from linnet.lab.relays.presence import Presence
from linnet.lab.relays.pushes import pushed_or_waiting
from linnet.lab.relays.returns import NOTHING


def first_pushes_of_any(attendance: Attendance) -> I64:
    """The first push in each online period, in arrival order; `NOTHING` if there is none."""
    first = by_presence(attendance, pushed_or_waiting(attendance))
    presence = attendance.presence
    speaking, last = _last_messages(attendance)
    bounds = np.searchsorted(presence.member, np.arange(attendance.ordered.chat.members + 1))
    for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        if low < high:
            _receive_from_returners(presence, speaking, last, low, high, first)
    return np.where(first < presence.end, first, NOTHING)[attendance.periods.order]


def _last_messages(attendance: Attendance) -> tuple[I64, I64]:
    """Periods in which something is said, and when the last of it is."""
    final = np.append(attendance.turn[1:] != attendance.turn[:-1], True)
    return attendance.turn[final], attendance.ordered.ts[final]


def _receive_from_returners(
    presence: Presence, speaking: I64, last: I64, low: int, high: int, first: I64
) -> None:
    """Lower `first` of one receiver's periods [low, high) to the returns of those that it had missed."""
    member, start, end = presence
    starts, ends = padded(start[low:high]), end[low:high]
    missed = ~(starts[np.searchsorted(ends, last, side="right")] < end[speaking])
    missed &= member[speaking] != member[low]
    # The first instant that each period of the others shares with the receiver.
    mine = np.searchsorted(ends, start, side="right")
    joint = np.maximum(start, starts[mine])
    periods = len(member)
    pointer = np.where(joint < end, np.arange(periods), periods)
    pointer = np.append(np.minimum.accumulate(pointer[::-1])[::-1], periods)
    said = speaking[missed]
    met = pointer[said + 1]
    met = met[np.append(member, np.int32(-1))[met] == member[said]]
    np.minimum.at(first, low + mine[met], joint[met])
