"""Stream samplers as published, nodes that pull from them, and the effort of an attacker.

The knowledge-free sampler (Anceaume, Busnel, Sericola 2013) stops for ever while any of its counters is zero,
and gives in to more flooding ids than it has columns; tests show both, and both are why nodes use a changed
one. `Pulling` samples by pulls with parts that can be removed one by one, to show the purpose of each.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from math import log
from random import Random
from typing import NamedTuple, Protocol

from linnet.core.ids import PeerId
from linnet.overlay.gossip.peer_sampling import StreamSampler
from linnet.sim.baselines.gossip import Ask, Entries, fresh


class Sampler:
    """A memory of ids; it admits others with some chance, each in place of a random one."""

    def __init__(self, size: int, rng: Random) -> None:
        self._size = size
        self._rng = rng
        self._members: list[PeerId] = []

    @property
    def members(self) -> tuple[PeerId, ...]:
        """The ids in the memory."""
        return tuple(self._members)

    def count(self, peer: PeerId) -> None:
        """Count an appearance of an id in the stream."""

    def offer(self, peer: PeerId) -> PeerId | None:
        """Admit an id, or not; return the id that it replaces."""
        if peer in self._members:
            return None
        if len(self._members) < self._size:
            self._members.append(peer)
            return None
        if not self._is_let_in(peer):
            return None
        place = self._rng.randrange(self._size)
        evicted, self._members[place] = self._members[place], peer
        return evicted

    def draw(self) -> PeerId:
        """Draw a random member: the output of the sampler."""
        return self._rng.choice(self._members)

    def _is_let_in(self, peer: PeerId) -> bool:
        """Return whether the id is admitted: here always, and nothing is counted."""
        return True


class KnowledgeFreeSampler(Sampler):
    """Admits an id with the smallest counter divided by the id's estimate as its chance."""

    def __init__(self, size: int, rows: int, columns: int, key: bytes, rng: Random) -> None:
        super().__init__(size, rng)
        self._rows = rows
        self._columns = columns
        self._key = key
        self._cells = [0] * (rows * columns)
        self._least = 0
        self._at_least = rows * columns
        """How many counters hold the least value."""
        self._places: dict[PeerId, list[int]] = {}

    def count(self, peer: PeerId) -> None:
        """Count an appearance of an id: raise all of its counters."""
        for place in self._of(peer):
            value = self._cells[place]
            self._cells[place] = value + 1
            self._at_least -= value == self._least
        if not self._at_least:
            self._least = min(self._cells)
            self._at_least = self._cells.count(self._least)

    def _is_let_in(self, peer: PeerId) -> bool:
        estimate = min([self._cells[place] for place in self._of(peer)])
        return self._rng.random() * estimate < self._least

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
    """Return how many ids pollute all counters of one victim, except with probability eta."""
    ids = 1
    while (1 - (1 - 1 / columns) ** (ids - 1)) ** rows < 1 - eta:
        ids += 1
    return ids


def flooding_effort(columns: int, eta: float) -> int:
    """Return how many ids hit every counter of a row, except with probability eta."""
    chances = [1.0] + [0.0] * columns
    ids = 0
    while chances[columns] < 1 - eta:
        chances = [
            chances[hit] * hit / columns + (chances[hit - 1] * (columns - hit + 1) / columns if hit else 0.0)
            for hit in range(columns + 1)
        ]
        ids += 1
    return ids


class OmniscientSampler(Sampler):
    """Admits an id with the frequency of the rarest divided by its own: so all are equally likely."""

    def __init__(self, size: int, chances: Mapping[PeerId, float], rng: Random) -> None:
        super().__init__(size, rng)
        self._chances = chances
        self._rarest = min(chances.values())

    def _is_let_in(self, peer: PeerId) -> bool:
        return self._rng.random() * self._chances[peer] < self._rarest


def divergence(counts: Mapping[PeerId, int], nodes: int) -> float:
    """Return how far a stream is from a uniform one over so many nodes (Kullback, Leibler)."""
    total = sum(counts.values())
    return sum(many / total * log(many * nodes / total) for many in counts.values() if many)


def gain(into: Mapping[PeerId, int], out: Mapping[PeerId, int], nodes: int) -> float:
    """Return the share of the unevenness of a stream that a sampler removed."""
    return 1 - divergence(out, nodes) / divergence(into, nodes)


class Memory(Protocol):
    """A stream sampler: the shipped one, or the published one."""

    @property
    def members(self) -> tuple[PeerId, ...]:
        """The ids in the memory."""

    def count(self, peer: PeerId) -> None:
        """Count an appearance of an id."""

    def offer(self, peer: PeerId) -> PeerId | None:
        """Admit an id, or not."""


class Parts(NamedTuple):
    """The parts of sampling that are on."""

    answer: int = 20
    offered: int = 1
    """Ids of an answer that are offered to the memory."""
    is_introduced: bool = True
    """Whether the peer that asks is admitted by the one that is asked."""
    halve_rounds: int = 0
    """Rounds after which counts are halved; 0: never."""


class EvenEviction(StreamSampler):
    """The shipped sampler with uniform eviction, as published."""

    __slots__ = ()

    def _choose_evicted(self) -> int:
        return int(self._rng.random() * self._size)


class Pulling:
    """One node that pulls from random members of its memory."""

    def __init__(
        self, ours: PeerId, first: Sequence[PeerId], memory: Memory, parts: Parts, rng: Random
    ) -> None:
        self._ours = ours
        self._memory = memory
        self._parts = parts
        self._rng = rng
        self._rounds = 0
        for peer in first:
            memory.offer(peer)

    @property
    def view(self) -> tuple[PeerId, ...]:
        """The peers in the node's view."""
        return self._memory.members

    def begin(self) -> list[Ask]:
        """Pull from one random peer."""
        view = self.view
        if not view:
            return []
        return [Ask(self._rng.choice(view), fresh([self._ours]), is_answered=True)]

    def asked(self, peer: PeerId, entries: Entries) -> Entries:
        """Answer with ourselves and some of the memory; the asking peer may be admitted."""
        view = self.view
        told = self._rng.sample(view, min(self._parts.answer - 1, len(view)))
        if self._parts.is_introduced:
            self._memory.count(peer)
            self._memory.offer(peer)
        return fresh([self._ours, *told])

    def answered(self, peer: PeerId, entries: Entries) -> None:
        """Count all entries, offer some of them."""
        peers = list(dict.fromkeys([entry.peer for entry in entries if entry.peer != self._ours]))
        for named in peers:
            self._memory.count(named)
        for named in self._rng.sample(peers, min(self._parts.offered, len(peers))):
            self._memory.offer(named)

    def unanswered(self, peer: PeerId) -> None:
        """Do nothing."""

    def end(self) -> None:
        """Age the counts, if they age."""
        self._rounds += 1
        if isinstance(self._memory, StreamSampler):
            self._memory.round()
            if self._parts.halve_rounds and self._rounds % self._parts.halve_rounds == 0:
                self._memory.halve()
