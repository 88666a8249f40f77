"""A set of event ids in the order of (height, id), with fingerprints of any range of it.

The fingerprint of a set is the SHA-256 of its size and of the sum of its ids modulo 2^256, so that sums
of parts add up and a range costs two partial blocks, however long it is. A plain XOR of the ids would not
do: it is linear over bits, and whoever can make some 256 events can find, by elimination, some of
them whose XOR is zero, and so hide them from everyone. Against sums no such short cut is known, only
generalised birthday attacks (Wagner 2002) on a great many events. And what was hidden so would still be
seen: later events name it, and the barriers ask for it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from hashlib import sha256

from linnet.core.ids import EventId
from linnet.core.limits import LARGEST_COUNT

Key = tuple[int, EventId]
"""Height and id."""

START: Key = (0, EventId(bytes(32)))
END: Key = (LARGEST_COUNT, EventId(b"\xff" * 32))
"""The end of everything: no event is at or past it."""

_BLOCK = 512
"""Ids in one block at most: a partial sum costs some 30 microseconds."""
_MODULUS = 1 << 256


class _Block:
    """Neighbouring ids."""

    __slots__ = ("heights", "ids", "sum")

    def __init__(self) -> None:
        self.heights = array("Q")
        self.ids: list[EventId] = []
        self.sum = 0

    def place(self, key: Key) -> int:
        """How many are before this key."""
        height, id = key
        low = bisect_left(self.heights, height)
        return bisect_left(self.ids, id, low, bisect_right(self.heights, height, low))

    def key(self, at: int) -> Key:
        return self.heights[at], self.ids[at]


class SortedIds:
    """Ids in blocks, with running sums over the blocks that are mended from where something changed."""

    def __init__(self) -> None:
        self._blocks: list[_Block] = []
        self._firsts: list[Key] = []
        """The first key of each block."""
        self._counts = [0]
        self._sums = [0]
        """Of all blocks before each, as far as they are up to date."""
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __contains__(self, key: Key) -> bool:
        block, at = self._find(key)
        return block < len(self._blocks) and self._here(self._blocks[block], at, key)

    def __iter__(self) -> Iterator[Key]:
        for block in self._blocks:
            yield from zip(block.heights, block.ids, strict=True)

    def add(self, height: int, id: EventId) -> bool:
        """Put an id in; whether it was not there before."""
        key = (height, id)
        if not START <= key < END:
            raise ValueError("a height is a count, and an id has 32 bytes")
        if not self._blocks or (key > self._blocks[-1].key(-1) and len(self._blocks[-1].ids) >= _BLOCK):
            self._blocks.append(_Block())
            self._firsts.append(key)
        number, at = self._find(key)
        block = self._blocks[number]
        if self._here(block, at, key):
            return False
        block.heights.insert(at, height)
        block.ids.insert(at, id)
        block.sum += int.from_bytes(id)
        self._size += 1
        self._changed(number)
        if len(block.ids) > _BLOCK:
            self._split(number)
        return True

    def remove(self, height: int, id: EventId) -> bool:
        """Take an id out; whether it was there."""
        key = (height, id)
        if key not in self:
            return False
        number, at = self._find(key)
        block = self._blocks[number]
        del block.heights[at], block.ids[at]
        block.sum -= int.from_bytes(id)
        self._size -= 1
        self._changed(number)
        if not block.ids:
            del self._blocks[number], self._firsts[number]
        else:
            self._firsts[number] = block.key(0)
        return True

    def rank(self, key: Key) -> int:
        """How many are before this key."""
        if not self._blocks:
            return 0
        number, at = self._find(key)
        self._mend(number)
        return self._counts[number] + at

    def key_at(self, rank: int) -> Key:
        """The key that so many are before."""
        self._mend(len(self._blocks))
        number = bisect_right(self._counts, rank) - 1
        return self._blocks[number].key(rank - self._counts[number])

    def keys(self, low: Key, high: Key, limit: int) -> list[Key]:
        """The first keys from one place up to, not including, another."""
        found: list[Key] = []
        if not self._blocks:
            return found
        number, at = self._find(low)
        while number < len(self._blocks) and len(found) < limit:
            block = self._blocks[number]
            end = min(block.place(high), at + limit - len(found))
            found += zip(block.heights[at:end], block.ids[at:end], strict=True)
            if end < len(block.ids):
                break
            number, at = number + 1, 0
        return found

    def fingerprint(self, low: Key, high: Key) -> bytes:
        """Of the set of ids from one place up to, not including, another."""
        count_low, sum_low = self._before(low)
        count_high, sum_high = self._before(high)
        total = (sum_high - sum_low) % _MODULUS
        return sha256((count_high - count_low).to_bytes(8) + total.to_bytes(32)).digest()

    def _before(self, key: Key) -> tuple[int, int]:
        """How many are before this key, and their sum."""
        if not self._blocks:
            return 0, 0
        number, at = self._find(key)
        self._mend(number)
        block = self._blocks[number]
        if 2 * at > len(block.ids):
            part = block.sum - sum(map(int.from_bytes, block.ids[at:]))
        else:
            part = sum(map(int.from_bytes, block.ids[:at]))
        return self._counts[number] + at, self._sums[number] + part

    def _find(self, key: Key) -> tuple[int, int]:
        """The block where a key is or would be, and its place there."""
        number = max(0, bisect_right(self._firsts, key) - 1)
        return (number, self._blocks[number].place(key)) if self._blocks else (0, 0)

    @staticmethod
    def _here(block: _Block, at: int, key: Key) -> bool:
        return at < len(block.ids) and block.key(at) == key

    def _split(self, number: int) -> None:
        block, upper = self._blocks[number], _Block()
        middle = len(block.ids) // 2
        upper.heights, upper.ids = block.heights[middle:], block.ids[middle:]
        del block.heights[middle:], block.ids[middle:]
        upper.sum = sum(map(int.from_bytes, upper.ids))
        block.sum -= upper.sum
        self._blocks.insert(number + 1, upper)
        self._firsts.insert(number + 1, upper.key(0))

    def _changed(self, number: int) -> None:
        """What is reckoned of the blocks after this one is out of date; its first key may be another."""
        del self._counts[number + 1 :], self._sums[number + 1 :]
        if self._blocks[number].ids:
            self._firsts[number] = self._blocks[number].key(0)

    def _mend(self, number: int) -> None:
        """Bring the running sums up to date, up to what is before this block."""
        for at in range(len(self._counts) - 1, number):
            self._counts.append(self._counts[at] + len(self._blocks[at].ids))
            self._sums.append(self._sums[at] + self._blocks[at].sum)
