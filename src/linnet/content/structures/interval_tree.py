"""Intervals of whole numbers of 64 bits, and those of them that hold a number.

An interval tree whose middles are fixed: an interval lies in the smallest dyadic block that holds all of it
(Edelsbrunner 1980 chooses middles from the data, and has to be rebuilt as they change). It holds the middle
of that block, so of a block's intervals those hold a smaller number that begin early enough, and those a
larger one that end late enough. A number lies in one block of each size: 65 looks at most, however many
intervals there are, and then only what is found.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right

_LEVEL_BITS = 7
_BELOW = 1 << 63
"""Added to a number, so that none is negative."""
_FEW = 24
"""Intervals of a block that are looked at one by one."""


class _Many:
    """The intervals of a full block, by their beginnings and by their ends, last first."""

    __slots__ = ("firsts", "lasts")

    def __init__(self, few: array[int]) -> None:
        self.firsts = SortedRuns()
        self.lasts = SortedRuns()
        for at in range(0, len(few), 3):
            self.add(few[at], few[at + 1], few[at + 2])

    def add(self, first: int, last: int, handle: int) -> None:
        self.firsts.add(first, handle)
        self.lasts.add(-last, handle)

    def remove(self, first: int, last: int, handle: int) -> None:
        self.firsts.remove(first, handle)
        self.lasts.remove(-last, handle)


class Intervals:
    """Intervals with a handle each, bounds included."""

    __slots__ = ("_blocks", "_levels", "_size")

    def __init__(self) -> None:
        self._blocks: dict[int, array[int] | _Many] = {}
        self._levels: dict[int, int] = {}
        """How many blocks there are of each size."""
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, first: int, last: int, handle: int) -> None:
        """Put an interval in."""
        level, name = _block(first, last)
        block = self._blocks.get(name)
        if block is None:
            self._levels[level] = self._levels.get(level, 0) + 1
            self._blocks[name] = array("q", (first, last, handle))
        elif isinstance(block, _Many):
            block.add(first, last, handle)
        else:
            block.extend((first, last, handle))
            if len(block) > 3 * _FEW:
                self._blocks[name] = _Many(block)
        self._size += 1

    def remove(self, first: int, last: int, handle: int) -> None:
        """Take an interval out that is here."""
        level, name = _block(first, last)
        block = self._blocks[name]
        if isinstance(block, _Many):
            block.remove(first, last, handle)
            is_empty = not len(block.firsts)
        else:
            at = 3 * block[2::3].index(handle)
            del block[at : at + 3]
            is_empty = not block
        if is_empty:
            del self._blocks[name]
            self._levels[level] -= 1
            if not self._levels[level]:
                del self._levels[level]
        self._size -= 1

    def holding(self, number: int) -> list[int]:
        """The handles of the intervals that hold a number."""
        found: list[int] = []
        blocks, from_zero = self._blocks, number + _BELOW
        for level in self._levels:
            block = blocks.get(from_zero >> level << _LEVEL_BITS | level)
            if block is None:
                continue
            if isinstance(block, _Many):
                if level and not from_zero >> (level - 1) & 1:
                    found += block.firsts.up_to(number)
                else:
                    found += block.lasts.up_to(-number)
            else:
                for at in range(0, len(block), 3):
                    if block[at] <= number <= block[at + 1]:
                        found.append(block[at + 2])
        return found

    def about(self, number: int) -> int:
        """How many hold a number, roughly, for less than finding them takes."""
        count = 0
        blocks, from_zero = self._blocks, number + _BELOW
        for level in self._levels:
            block = blocks.get(from_zero >> level << _LEVEL_BITS | level)
            if block is None:
                continue
            if isinstance(block, _Many):
                lower = level and not from_zero >> (level - 1) & 1
                count += block.firsts.about(number) if lower else block.lasts.about(-number)
            else:
                count += len(block) // 3
        return count


def _block(first: int, last: int) -> tuple[int, int]:
    """The size of the smallest block that holds an interval, and the name of the block."""
    low = first + _BELOW
    level = (low ^ (last + _BELOW)).bit_length()
    return level, low >> level << _LEVEL_BITS | level


_RUN = 1024
"""Handles in one run at most."""


class SortedRuns:
    """Pairs of a number and a handle, both of 64 bits: 16 bytes for each."""

    __slots__ = ("_handles", "_keys", "_run", "_size", "_tops")

    def __init__(self, run: int = _RUN) -> None:
        self._run = run
        self._keys: list[array[int]] = [array("q")]
        self._handles: list[array[int]] = [array("q")]
        self._tops: list[tuple[int, int]] = []
        """The last pair of each run but the last."""
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, key: int, handle: int) -> None:
        """Put a pair in that is not here."""
        number, at = self._place(key, handle)
        keys, handles = self._keys[number], self._handles[number]
        keys.insert(at, key)
        handles.insert(at, handle)
        self._size += 1
        if len(keys) > self._run:
            self._split(number)

    def remove(self, key: int, handle: int) -> None:
        """Take a pair out that is here."""
        number, at = self._place(key, handle)
        keys, handles = self._keys[number], self._handles[number]
        if at >= len(keys) or keys[at] != key or handles[at] != handle:
            raise KeyError(handle)
        del keys[at], handles[at]
        self._size -= 1
        if not keys and len(self._keys) > 1:
            del self._keys[number], self._handles[number]
            del self._tops[min(number, len(self._tops) - 1)]

    def up_to(self, key: int) -> list[int]:
        """The handles of all pairs whose number is not above this one."""
        found: list[int] = []
        for keys, handles in zip(self._keys, self._handles, strict=True):
            if not keys or keys[-1] <= key:
                found += handles
            else:
                found += handles[: bisect_right(keys, key)]
                break
        return found

    def about(self, key: int) -> int:
        """How many these are, give or take some runs: full runs are taken as equally long."""
        number = bisect_right(self._tops, key, key=_first)
        here = bisect_right(self._keys[number], key)
        return min(self._size, number * self._size // len(self._keys) + here)

    def _place(self, key: int, handle: int) -> tuple[int, int]:
        """The run where a pair is or would be, and its place there."""
        number = bisect_left(self._tops, (key, handle))
        keys = self._keys[number]
        low = bisect_left(keys, key)
        return number, bisect_left(self._handles[number], handle, low, bisect_right(keys, key, low))

    def _split(self, number: int) -> None:
        keys, handles = self._keys[number], self._handles[number]
        middle = len(keys) // 2
        self._keys.insert(number + 1, keys[middle:])
        self._handles.insert(number + 1, handles[middle:])
        del keys[middle:], handles[middle:]
        self._tops.insert(number, (keys[-1], handles[-1]))


def _first(pair: tuple[int, int]) -> int:
    return pair[0]
