"""The knowledge-free stream sampler as published (Anceaume, Busnel, Sericola 2013), and an attacker's effort.

It stops for ever while any of its counters is zero, and gives in to more flooding ids than it has
columns; both are shown by tests, and are why nodes use a changed one.
"""

from __future__ import annotations

import hashlib
from random import Random

from linnet.core.ids import PeerId


class KnowledgeFreeSampler:
    """Lets an id in with the least of all counters, divided by its own estimate."""

    def __init__(self, size: int, rows: int, columns: int, key: bytes, rng: Random) -> None:
        self._size = size
        self._rows = rows
        self._columns = columns
        self._key = key
        self._rng = rng
        self._cells = [0] * (rows * columns)
        self._least = 0
        self._at_least = rows * columns
        """How many counters hold the least value."""
        self._places: dict[PeerId, list[int]] = {}
        self._members: list[PeerId] = []

    @property
    def members(self) -> tuple[PeerId, ...]:
        """Whom it holds."""
        return tuple(self._members)

    def count(self, peer: PeerId) -> None:
        """An id appeared in the stream: all of its counters rise."""
        for place in self._of(peer):
            value = self._cells[place]
            self._cells[place] = value + 1
            self._at_least -= value == self._least
        if not self._at_least:
            self._least = min(self._cells)
            self._at_least = self._cells.count(self._least)

    def offer(self, peer: PeerId) -> PeerId | None:
        """Let an id in, or not; returns whom it replaces."""
        if peer in self._members:
            return None
        if len(self._members) < self._size:
            self._members.append(peer)
            return None
        estimate = min([self._cells[place] for place in self._of(peer)])
        if self._rng.random() * estimate >= self._least:
            return None
        place = self._rng.randrange(self._size)
        evicted, self._members[place] = self._members[place], peer
        return evicted

    def draw(self) -> PeerId:
        """The output: any member."""
        return self._rng.choice(self._members)

    def _of(self, peer: PeerId) -> list[int]:
        places = self._places.get(peer)
        if places is None:
            places = []
            for row in range(self._rows):
                digest = hashlib.blake2b(peer, digest_size=8, key=self._key, salt=bytes([row])).digest()
                places.append(row * self._columns + int.from_bytes(digest, "big") % self._columns)
            self._places[peer] = places
        return places


def targeted_effort(columns: int, rows: int, eta: float) -> int:
    """Ids that it takes to pollute all counters of one victim, but for a chance of eta."""
    ids = 1
    while (1 - (1 - 1 / columns) ** (ids - 1)) ** rows < 1 - eta:
        ids += 1
    return ids


def flooding_effort(columns: int, eta: float) -> int:
    """Ids that it takes to hit every counter of a row, but for a chance of eta."""
    chances = [1.0] + [0.0] * columns
    ids = 0
    while chances[columns] < 1 - eta:
        chances = [
            chances[hit] * hit / columns + (chances[hit - 1] * (columns - hit + 1) / columns if hit else 0.0)
            for hit in range(columns + 1)
        ]
        ids += 1
    return ids
