"""A presence laid over a chat: who is online when something is sent, and where messages fall in periods.

What relays and direct delivery both need is found here once for each presence, by sorting and by
binary search; nothing is done for each pair of message and member.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from linnet.lab.errors import LabError
from linnet.lab.relays.chat_arrays import I32, I64, ChatIndex, next_other, padded
from linnet.lab.relays.presence import Presence


class Arrivals(NamedTuple):
    """All periods by their start, one place more at the end for none."""

    start: I64
    member: I32
    next_other: I64
    """Place of the next arrival of somebody else."""


class Attendance(NamedTuple):
    """A chat and a presence together. Period k is that of `presence`; messages are places in time order."""

    ordered: ChatIndex
    presence: Presence
    arrivals: Arrivals
    prior_end: I64
    """End of the member's period before; -1 if there is none."""
    at_start: I64
    """Place of the first message at or after the start."""
    at_end: I64
    at_prior_end: I64
    """Place of the first message at or after the prior end: what the member has missed begins there."""
    first_own: I64
    """Member-order place of the period's first message, or of the next one if it has none."""
    company: I64
    """How many are online at the start, the member included."""
    next_start: I64
    """The first arrival after the start; may be the member's own next one."""
    period: I64
    """The sender's period of each message."""
    started: I64
    """Periods begun by the time of each message."""
    online: I64
    """Members online at the time of each message, the sender included."""


def attend(index: ChatIndex, presence: Presence) -> Attendance:
    """Lay a presence over a chat; a member who sends must be online."""
    member, start, end = presence
    ts = index.chat.ts
    by_start = np.argsort(start, kind="stable")
    starts, arriving = start[by_start], member[by_start]
    arrivals = Arrivals(padded(starts), np.append(arriving, np.int32(-1)), next_other(arriving))
    begun = np.searchsorted(starts, starts, side="right")
    company, following = np.empty_like(begun), np.empty_like(begun)
    company[by_start] = begun - np.searchsorted(np.sort(end), starts, side="right")
    following[by_start] = arrivals.start[begun]
    at_start, at_end = np.searchsorted(ts, start), np.searchsorted(ts, end)
    first_own = _first_own(index, presence)
    period = (_running(first_own, len(ts)) - 1)[index.rank]
    started = _running(at_start, len(ts))
    if (member[period] != index.chat.user).any() or (end[period] <= ts).any():
        raise LabError("a member sends while it is offline; add its sends to its online periods")
    return Attendance(
        index,
        presence,
        arrivals,
        _before(member, end, -1),
        at_start,
        at_end,
        _before(member, at_end, 0),
        first_own,
        company,
        following,
        period,
        started,
        started - _running(at_end, len(ts)),
    )


def _first_own(index: ChatIndex, presence: Presence) -> I64:
    span = int(index.chat.ts[-1]) + 2
    sent = index.user * np.int64(span) + index.ts
    return np.searchsorted(sent, presence.member * np.int64(span) + np.minimum(presence.start, span - 1))


def _running(places: I64, count: int) -> I64:
    """For each of so many places, how many of the given ones lie at or before it."""
    return np.cumsum(np.bincount(places, minlength=count + 1)[:count])


def _before(member: I32, values: I64, none: int) -> I64:
    """The value of the same member's period before."""
    shifted = np.concatenate(([none], values[:-1]))
    shifted[1:][member[1:] != member[:-1]] = none
    return shifted
