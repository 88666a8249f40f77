"""What relays still do if they forget events after a while.

What they hold meanwhile does not depend on who is online: `linnet.lab.relays.held`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from linnet.lab.errors import LabError
from linnet.lab.relays.around_sends import attend_around
from linnet.lab.relays.attendance import Attendance, attend
from linnet.lab.relays.chat_arrays import FAR, I64, ChatIndex
from linnet.lab.relays.deliveries import Deliveries, first_deliveries
from linnet.lab.relays.durations import Counts, histogram
from linnet.lab.relays.presence import Presence


class Pairs(NamedTuple):
    """Pairs of event and other member who is online at the sending or within the retention after it."""

    every: int
    owed: int
    """Those of them whose member was online before the sending or at it: the others came later for the
    first time, and nobody knows whether they belonged to the chat already."""


class RetentionOutcome(NamedTuple):
    """What comes of one retention in one chat."""

    retention: int
    """Milliseconds for which relays keep an event."""
    first_delivery: Counts
    """From the sending to the first delivery to anybody else, by bins; the sender still tries by itself."""
    pairs: Pairs


def retention_outcomes(
    index: ChatIndex, presence: Presence, retentions: Sequence[int], margin: int | None = None
) -> tuple[RetentionOutcome, ...]:
    """What comes of each of these retentions, in their order.

    Name the margin if the presence is that of `periods_around`; it is only faster.
    """
    if any(retention < 0 for retention in retentions):
        raise LabError(f"retentions must be 0 ms or more, and {min(retentions)} is not")
    attendance = attend(index, presence) if margin is None else attend_around(index, presence, margin)
    first = first_with_retentions(index.chat.ts, first_deliveries(attendance), retentions)
    return tuple(map(RetentionOutcome, retentions, first, pairs_within(attendance, retentions)))


def first_with_retentions(ts: I64, deliveries: Deliveries, retentions: Sequence[int]) -> tuple[Counts, ...]:
    """First deliveries where relays forget; what they forgot before anybody came, its sender delivers."""
    wait = np.where(deliveries.relays >= 0, deliveries.relays - ts, FAR + 1)
    found: dict[int, Counts] = {}
    counts = []
    for retention in retentions:
        in_time = wait <= retention
        # Whatever a shorter retention has in time, a longer one has too: as many are the same ones.
        number = int(in_time.sum())
        if number not in found:
            found[number] = histogram(ts, np.where(in_time, deliveries.relays, deliveries.p2p))
        counts.append(found[number])
    return tuple(counts)


def pairs_within(attendance: Attendance, retentions: Sequence[int]) -> tuple[Pairs, ...]:
    """For each retention, pairs of event and other member whose first instant online is not later than it.

    A member gets in a period what others send until its end, from where it last left or the retention
    before its start; its own messages, all in its periods, are taken off.
    """
    ts, periods = attendance.ordered.chat.ts, attendance.periods
    received = int(attendance.at_ends.sum()) - len(ts)
    first = np.flatnonzero(periods.prior_end < 0)
    arrived = int(periods.at_start[first].sum())
    counts = []
    for retention in retentions:
        since = np.maximum(periods.at_prior_end, np.searchsorted(ts, periods.start - retention))
        every = received - int(since.sum())
        counts.append(Pairs(every, every + int(since[first].sum()) - arrived))
    return tuple(counts)
