"""The omniscient stream sampler (Anceaume, Busnel, Sericola 2013): it knows how often each id will come."""

from __future__ import annotations

from collections.abc import Mapping
from math import log
from random import Random

from linnet.core.ids import PeerId


class OmniscientSampler:
    """Lets an id in with the chance of the rarest, divided by its own: so all are alike."""

    def __init__(self, size: int, chances: Mapping[PeerId, float], rng: Random) -> None:
        self._size = size
        self._chances = chances
        self._rarest = min(chances.values())
        self._rng = rng
        self._members: list[PeerId] = []

    @property
    def members(self) -> tuple[PeerId, ...]:
        """Whom it holds."""
        return tuple(self._members)

    def offer(self, peer: PeerId) -> PeerId | None:
        """An id appeared; returns whom it replaces."""
        if peer in self._members:
            return None
        if len(self._members) < self._size:
            self._members.append(peer)
            return None
        if self._rng.random() * self._chances[peer] >= self._rarest:
            return None
        place = self._rng.randrange(self._size)
        evicted, self._members[place] = self._members[place], peer
        return evicted

    def draw(self) -> PeerId:
        """The output: any member."""
        return self._rng.choice(self._members)


def divergence(counts: Mapping[PeerId, int], nodes: int) -> float:
    """How far a stream is from an even one over so many nodes (Kullback, Leibler)."""
    total = sum(counts.values())
    return sum(many / total * log(many * nodes / total) for many in counts.values() if many)


def gain(into: Mapping[PeerId, int], out: Mapping[PeerId, int], nodes: int) -> float:
    """What part of the unevenness of a stream a sampler took away."""
    return 1 - divergence(out, nodes) / divergence(into, nodes)
