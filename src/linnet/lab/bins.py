"""Exact integer bins for durations, and what is read from them.

A duration of up to 63 ms has a bin of its own; above that each doubling is cut into 32 bins, so that a
bin is never wider than a thirty-second of its lower end. Counts are integers, hence sums over chats,
tasks and machines are exact. What never came (not delivered by the end of the trace) is counted in
the bin `NEVER` and stays part of every share: a quantile or a distribution is over all that was sent.

A bin does not tell where in it a duration lies. What is read from bins therefore takes every duration for
the longest of its bin: it may be worse than the data by less than a bin, and is never better.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from linnet.core.quantiles import rank

NEVER = -1
_EXACT = 64
_PARTS = 32
_SHIFT = 5

Bins: TypeAlias = Mapping[int, int]
"""Counts by bin."""


def bin_of(durations: NDArray[np.int64]) -> NDArray[np.int32]:
    """The bin of each duration in milliseconds; negative ones never ended."""
    safe = np.maximum(durations, 1)
    # The number of bits by the exponent of a double: exact below 2**53, which is 285,000 years.
    doublings = np.frexp(safe.astype(np.float64))[1].astype(np.int64) - 1 - _SHIFT
    fine = np.maximum(doublings, 0)
    bins = (fine << _SHIFT) + (safe >> fine)
    exact = np.where(durations < _EXACT, durations, bins)
    return np.where(durations < 0, NEVER, exact).astype(np.int32)


def lower(bin: int) -> int:
    """The shortest duration of a bin, in milliseconds."""
    if bin < _EXACT:
        return bin
    fine = (bin >> _SHIFT) - 1
    return (bin - (fine << _SHIFT)) << fine


def upper(bin: int) -> int:
    """The longest duration of a bin, in whole milliseconds."""
    return lower(bin + 1) - 1


def count_bins(durations: NDArray[np.int64]) -> dict[int, int]:
    """How many durations there are in each bin, in the order of the bins."""
    found, counts = np.unique(bin_of(durations), return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))


def total(bins: Bins) -> int:
    """All that was counted, what never came included."""
    return sum(bins.values())


def share_within(bins: Bins, milliseconds: int) -> float:
    """Share of all that surely took at most so long: a bin that goes on beyond it does not count."""
    count = sum(number for bin, number in bins.items() if bin != NEVER and upper(bin) <= milliseconds)
    return count / total(bins) if bins else 0.0


def share_never(bins: Bins) -> float:
    """Share of all that never came."""
    return bins.get(NEVER, 0) / total(bins) if bins else 0.0


def quantile(bins: Bins, share: float) -> int | None:
    """The upper end of the bin in which this quantile of all lies; None if so many never came."""
    if not bins:
        return None
    wanted = rank(share, total(bins))
    reached = 0
    for bin in sorted(bin for bin in bins if bin != NEVER):
        reached += bins[bin]
        if reached >= wanted:
            return upper(bin)
    return None


def ecdf(bins: Bins) -> tuple[list[int], list[float]]:
    """Upper ends of bins, and the share of all that took at most so long.

    It ends below 1 if some never came.
    """
    durations, shares, reached = [], [], 0
    for bin in sorted(bin for bin in bins if bin != NEVER):
        reached += bins[bin]
        durations.append(upper(bin))
        shares.append(reached / total(bins))
    return durations, shares
