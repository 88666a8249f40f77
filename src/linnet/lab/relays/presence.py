"""When members are online: for a margin around each of their messages.

A member is online on [start, end): at equal times members go offline, then come online, then send
(Schichtholz 2024, section 6.2 and Listing 12, with touching periods merged).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from linnet.lab.errors import LabError
from linnet.lab.relays.chat_arrays import I32, I64, ChatIndex


class Presence(NamedTuple):
    """Online periods by member, then by start; those of a member neither overlap nor touch."""

    member: I32
    start: I64
    end: I64


def periods_around(index: ChatIndex, margin: int) -> Presence:
    """[t - margin, t + margin) of each message, not before 0; what overlaps or touches is one period."""
    if margin <= 0:
        raise LabError(f"a margin of {margin} ms leaves members offline while they send; it must be positive")
    first = np.flatnonzero((index.since > 2 * margin)[index.order])
    last = np.append(first[1:], len(index.ts)) - 1
    start = np.maximum(index.ts[first] - margin, 0)
    return Presence(index.user[first], start, index.ts[last] + margin)


def merge_periods(member: I32, start: I64, end: I64) -> Presence:
    """Any periods, in any order, as a presence; empty ones count for nothing."""
    kept = start < end
    member, start, end = member[kept], start[kept], end[kept]
    if not len(member):
        return Presence(member, start, end)
    order = np.lexsort((start, member))
    member, start, end = member[order], start[order], end[order]
    # Members are moved apart, so that one running maximum of the ends serves all of them.
    apart = member.astype(np.int64) * (int(end.max()) + 2)
    reached = np.maximum.accumulate(end + apart)
    fresh = np.concatenate(([True], (start + apart)[1:] > reached[:-1]))
    first = np.flatnonzero(fresh)
    last = np.append(first[1:], len(start)) - 1
    return Presence(member[first], start[first], (reached - apart)[last])
