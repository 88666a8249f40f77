"""How often each id was seen, about: a count-min sketch with keyed positions, for a whole stream.

Updates are conservative (only the least counters of an id rise), which keeps ids that are seldom
seen apart from those that flood. The key is the node's secret, so nobody can pick ids that share
counters with a victim.
"""

from __future__ import annotations

import hashlib
from array import array
from math import floor

KEY_BYTES = 32
LARGEST = 2**32 - 1

_FINEST = 256
"""An appearance counts so much at most; see `halve`."""


class CountMin:
    """Counters of ids. All counts can be halved at no cost, so that old appearances weigh less."""

    __slots__ = ("_cells", "_columns", "_held", "_key", "_places", "_remembered", "_rows", "_unit")

    def __init__(self, rows: int, columns: int, key: bytes, remembered: int = 1024) -> None:
        if not 1 <= rows <= 16 or not 1 <= columns <= 2**32:
            raise ValueError("a sketch has 1 to 16 rows, and at least one column")
        self._rows = rows
        self._columns = columns
        self._key = key[:KEY_BYTES]
        self._cells = array("I", bytes(4 * rows * columns))
        self._unit = 1
        """What one appearance adds: it doubles where all counters would be halved."""
        self._held: dict[int, int] = {}
        """How many counters hold each value but zero: the quantile is read from it."""
        self._places: dict[bytes, tuple[int, ...]] = {}
        self._remembered = remembered

    def count(self, seen: bytes) -> float:
        """An id was seen; returns how often, by now."""
        places = self._places.get(seen)
        if places is None:
            places = self._place(seen)
        cells = self._cells
        risen = min([cells[place] for place in places]) + self._unit
        if risen > LARGEST:
            risen = LARGEST
        held = self._held
        moved = 0
        for place in places:
            value = cells[place]
            if value < risen:
                cells[place] = risen
                moved += 1
                if value:
                    held[value] -= 1
        held[risen] = held.get(risen, 0) + moved
        return risen / self._unit

    def estimate(self, seen: bytes) -> float:
        """How often an id was seen, at least as it seems: never less than it was."""
        places = self._places.get(seen)
        if places is None:
            places = self._place(seen)
        cells = self._cells
        return min([cells[place] for place in places]) / self._unit

    def quantile(self, tau: float) -> float:
        """The value that this part of the counters which are not zero do not exceed; 0 if all are."""
        self._held = {value: many for value, many in self._held.items() if many}
        wanted = floor(tau * (sum(self._held.values()) - 1))
        for value in sorted(self._held):
            wanted -= self._held[value]
            if wanted < 0:
                return value / self._unit
        return 0.0

    def least(self) -> float:
        """The least of all counters, zeros included."""
        return min(self._cells) / self._unit

    def halve(self) -> None:
        """Let all that was seen count half as much.

        Only relations of counts matter to a sampler, so later appearances count double instead;
        after some halvings the counters are really divided.
        """
        self._unit *= 2
        if self._unit < _FINEST:
            return
        self._cells = array("I", [cell // _FINEST for cell in self._cells])
        self._unit //= _FINEST
        self._held = {}
        for cell in self._cells:
            if cell:
                self._held[cell] = self._held.get(cell, 0) + 1

    def _place(self, seen: bytes) -> tuple[int, ...]:
        """The counter of an id in each row, remembered for the ids that came last."""
        digest = hashlib.blake2b(seen, digest_size=4 * self._rows, key=self._key).digest()
        columns = self._columns
        places = tuple(
            [
                row * columns + int.from_bytes(digest[4 * row : 4 * row + 4], "little") % columns
                for row in range(self._rows)
            ]
        )
        if len(self._places) >= self._remembered:
            del self._places[next(iter(self._places))]
        self._places[seen] = places
        return places
