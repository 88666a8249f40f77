"""Ranges of sequence numbers that were seen: the duplicate window of one chain.

Without gaps there is one range, from the first to the latest; a gap splits it, a late arrival
merges it (Juslenius 2021, section 4.2.2). Beyond its capacity the lowest range is given up, and
all that lies below counts as seen.
"""

from __future__ import annotations

from bisect import bisect_right

Range = tuple[int, int]
"""First and last sequence number, both included."""


class SeenRanges:
    """A set of sequence numbers, kept as disjoint ranges that do not touch."""

    __slots__ = ("_capacity", "_firsts", "_lasts", "floor")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        self.floor = 0
        """Everything below counts as seen: it was, or it is too old to tell."""

    def __len__(self) -> int:
        return len(self._firsts)

    @property
    def ranges(self) -> list[Range]:
        """The ranges, lowest first."""
        return list(zip(self._firsts, self._lasts, strict=True))

    @property
    def last(self) -> int:
        """The highest number seen; -1 if there is none."""
        return self._lasts[-1] if self._lasts else self.floor - 1

    def covers(self, first: int, last: int) -> bool:
        """Whether all of this range was seen."""
        firsts = self._firsts
        if firsts and first >= firsts[-1]:  # the common case by far
            return last <= self._lasts[-1]
        if last < self.floor:
            return True
        index = bisect_right(firsts, max(first, self.floor)) - 1
        return index >= 0 and last <= self._lasts[index]

    def touches(self, first: int, last: int) -> bool:
        """Whether any of this range was seen."""
        if first < self.floor:
            return True
        index = bisect_right(self._firsts, last) - 1
        return index >= 0 and first <= self._lasts[index]

    def add(self, first: int, last: int) -> Range | None:
        """Count a range as seen. Returns the range that had to be given up for it, if any."""
        firsts, lasts = self._firsts, self._lasts
        if lasts and first == lasts[-1] + 1:
            lasts[-1] = last
            return None
        low = bisect_right(lasts, first - 2)  # the first range that touches or lies above
        high = bisect_right(firsts, last + 1)  # the first range that lies wholly above
        if low < high:
            first, last = min(first, firsts[low]), max(last, lasts[high - 1])
        firsts[low:high] = [first]
        lasts[low:high] = [last]
        if len(firsts) <= self._capacity:
            return None
        lost = (firsts.pop(0), lasts.pop(0))
        self.floor = max(self.floor, lost[1] + 1)
        return lost

    def missing(self, first: int, last: int) -> list[Range]:
        """The parts of a range that were not seen, lowest first."""
        holes: list[Range] = []
        at = max(first, self.floor)
        for start in range(max(0, bisect_right(self._firsts, at) - 1), len(self._firsts)):
            if self._firsts[start] > last:
                break
            if self._firsts[start] > at:
                holes.append((at, self._firsts[start] - 1))
            at = max(at, self._lasts[start] + 1)
        if at <= last:
            holes.append((at, last))
        return holes
