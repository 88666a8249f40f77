"""Which fragment numbers of a place were seen, kept in cells as ranges: what gaps are found by.

A number stays seen when its fragment is evicted, and also counts as seen if it is not for us to see.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from struct import Struct as Packing

from linnet.core.ids import TopicId
from linnet.core.stores import Cells
from linnet.delivery.ranges import Range

MOST_RANGES = 65_536
"""Ranges that are kept apart; a few megabytes. What would make more has to wait for the gaps before it."""
_number = Packing(">Q")


class Numbers:
    """The ranges of one place; one cell each, so that a number more changes one or two of them."""

    def __init__(self, place: TopicId, cells: Cells, most: int = MOST_RANGES) -> None:
        self._cells = cells
        self._most = most
        self._space = f"place numbers {place.hex()}"
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        for first, last in cells.scan(self._space):
            self._firsts.append(_number.unpack(first)[0])
            self._lasts.append(_number.unpack(last)[0])

    @property
    def ranges(self) -> list[Range]:
        """What was seen, lowest first."""
        return list(zip(self._firsts, self._lasts, strict=True))

    @property
    def last(self) -> int:
        """The highest number seen; -1: none."""
        return self._lasts[-1] if self._lasts else -1

    @property
    def upto(self) -> int:
        """The first number that was not seen."""
        return self._lasts[0] + 1 if self._firsts and self._firsts[0] == 0 else 0

    def has(self, number: int) -> bool:
        """Whether a number was seen."""
        at = bisect_right(self._firsts, number) - 1
        return at >= 0 and number <= self._lasts[at]

    def before(self, number: int) -> int:
        """The highest number seen that is not above this one; -1: none."""
        at = bisect_right(self._firsts, number) - 1
        return min(number, self._lasts[at]) if at >= 0 else -1

    def has_room(self, first: int, last: int) -> bool:
        """Whether these can be added: it may be that too many ranges are open already."""
        low, high = self._touching(first, last)
        return low < high or len(self._firsts) < self._most

    def add(self, first: int, last: int) -> None:
        """Count numbers as seen."""
        low, high = self._touching(first, last)
        if low < high:
            if self._firsts[low] <= first and last <= self._lasts[low]:
                return
            first, last = min(first, self._firsts[low]), max(last, self._lasts[high - 1])
        self._replace(low, high, [(first, last)])

    def missing(self, below: int, most: int) -> list[Range]:
        """Numbers below a bound that were not seen, lowest first, so many ranges at most."""
        holes: list[Range] = []
        at, index = 0, 0
        while at < below and len(holes) < most:
            first = self._firsts[index] if index < len(self._firsts) else below
            if first > at:
                holes.append((at, min(first, below) - 1))
            at = self._lasts[index] + 1 if index < len(self._lasts) else below
            index += 1
        return holes

    def remove(self, numbers: Sequence[int]) -> None:
        """Numbers that are free again, in order: another term will use them."""
        if not numbers:
            return
        low = bisect_left(self._lasts, numbers[0])
        left: list[Range] = []
        at = 0
        for first, last in self.ranges[low:]:
            begin = first
            while at < len(numbers) and numbers[at] <= last:
                if begin < numbers[at]:
                    left.append((begin, numbers[at] - 1))
                begin = max(begin, numbers[at] + 1)
                at += 1
            if begin <= last:
                left.append((begin, last))
        self._replace(low, len(self._firsts), left)

    def _touching(self, first: int, last: int) -> tuple[int, int]:
        """The ranges that overlap or touch these numbers, by their places in the lists."""
        return bisect_left(self._lasts, first - 1), bisect_right(self._firsts, last + 1)

    def _replace(self, low: int, high: int, ranges: list[Range]) -> None:
        kept = {first: None for first, _ in ranges}
        for first in self._firsts[low:high]:
            if first not in kept:
                self._cells.delete(self._space, _number.pack(first))
        for first, last in ranges:
            self._cells.put(self._space, _number.pack(first), _number.pack(last))
        self._firsts[low:high] = [first for first, _ in ranges]
        self._lasts[low:high] = [last for _, last in ranges]
