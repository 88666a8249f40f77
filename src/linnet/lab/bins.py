"""Exact integer bins for durations, and what is read from them.

A duration of up to 63 ms has a bin of its own; above that each doubling is cut into 32 bins, so that a
bin is never wider than a thirty-second of its lower end. Counts are integers, hence sums over chats,
tasks and machines are exact. What never came (not delivered by the end of the trace) is counted in
the bin `NEVER` and stays part of every share: a quantile or a distribution is over all that was sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

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


def count_bins(durations: NDArray[np.int64]) -> dict[int, int]:
    """How many durations there are in each bin, in the order of the bins."""
    found, counts = np.unique(bin_of(durations), return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))


def total(bins: Bins) -> int:
    """All that was counted, what never came included."""
    return sum(bins.values())


def share_within(bins: Bins, milliseconds: int) -> float:
    """Share of all that took at most as long as the bin of this duration."""
    last = int(bin_of(np.array([milliseconds], dtype=np.int64))[0])
    count = sum(number for bin, number in bins.items() if 0 <= bin <= last)
    return count / total(bins) if bins else 0.0


def share_never(bins: Bins) -> float:
    """Share of all that never came."""
    return bins.get(NEVER, 0) / total(bins) if bins else 0.0


def quantile(bins: Bins, share: float) -> int | None:
    """The lower end of the bin below which this share of all lies; None if so many never came."""
    wanted = share * total(bins)
    reached = 0
    for bin in sorted(bin for bin in bins if bin != NEVER):
        reached += bins[bin]
        if reached >= wanted:
            return lower(bin)
    return None


def ecdf(bins: Bins) -> tuple[list[int], list[float]]:
    """Durations, and the share of all that took at most so long; it ends below 1 if some never came."""
    durations, shares, reached = [], [], 0
    for bin in sorted(bin for bin in bins if bin != NEVER):
        reached += bins[bin]
        durations.append(lower(bin))
        shares.append(reached / total(bins))
    return durations, shares
