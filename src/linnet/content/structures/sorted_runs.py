"""Handles in the order of a number each, in short runs, so that putting one in moves little."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right

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
