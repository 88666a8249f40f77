"""Ranges of fragment numbers that are missing, with when each was noticed.

A range costs the same whether it holds one number or 10¹²: numbers come from others.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple


class Gap(NamedTuple):
    """A range of numbers, both ends included."""

    first: int
    last: int
    since: float


class Gaps:
    """Disjoint ranges, lowest first."""

    def __init__(self) -> None:
        self._gaps: list[Gap] = []

    def __len__(self) -> int:
        return len(self._gaps)

    def __iter__(self) -> Iterator[Gap]:
        return iter(self._gaps)

    def __contains__(self, number: int) -> bool:
        return self._index(number) is not None

    @property
    def count(self) -> int:
        """Numbers in all ranges."""
        return sum(gap.last - gap.first + 1 for gap in self._gaps)

    def open(self, first: int, last: int, since: float) -> None:
        """Add a range; what of it is there already stays as it is."""
        at = first
        low = bisect_left(self._gaps, first, key=lambda gap: gap.last)
        high = bisect_right(self._gaps, last, key=lambda gap: gap.first)
        merged: list[Gap] = []
        for gap in self._gaps[low:high]:
            if gap.first > at:
                merged.append(Gap(at, gap.first - 1, since))
            merged.append(gap)
            at = gap.last + 1
        if at <= last:
            merged.append(Gap(at, last, since))
        self._gaps[low:high] = merged

    def fill(self, number: int) -> bool:
        """Take a number out; whether it was in."""
        index = self._index(number)
        if index is None:
            return False
        first, last, since = self._gaps[index]
        rest = [Gap(first, number - 1, since), Gap(number + 1, last, since)]
        self._gaps[index : index + 1] = [gap for gap in rest if gap.first <= gap.last]
        return True

    def splits(self, number: int) -> bool:
        """Whether taking this number out would make two ranges of one."""
        index = self._index(number)
        return index is not None and self._gaps[index].first < number < self._gaps[index].last

    def cut(self, number: int) -> None:
        """Forget this number and all above it."""
        kept = [gap for gap in self._gaps if gap.first < number]
        self._gaps = [Gap(gap.first, min(gap.last, number - 1), gap.since) for gap in kept]

    def begin(self, number: int) -> None:
        """Forget all numbers below this one."""
        kept = [gap for gap in self._gaps if gap.last >= number]
        self._gaps = [Gap(max(gap.first, number), gap.last, gap.since) for gap in kept]

    def put_back(self, seconds: float) -> None:
        """The clock was put back by so many seconds: they were noticed as long ago as before."""
        self._gaps = [Gap(gap.first, gap.last, gap.since - seconds) for gap in self._gaps]

    def clear(self) -> None:
        """Forget all."""
        self._gaps.clear()

    def _index(self, number: int) -> int | None:
        index = bisect_left(self._gaps, number, key=lambda gap: gap.last)
        return index if index < len(self._gaps) and self._gaps[index].first <= number else None
