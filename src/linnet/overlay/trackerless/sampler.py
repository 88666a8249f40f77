"""A few ids out of a stream that others may have biased, such that each id is as likely as any.

After the knowledge-free strategy of Anceaume, Busnel, Sericola 2013, changed in four ways, since
as published it stops for ever while any counter is zero, and gives in to more flooding ids than
it has columns: an id is measured against a quantile of the counters that are not zero, updates
are conservative, counts age, and of two members it is the one seen more often that gives way. The
last keeps down liars that got in before there was anything to tell them by.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from linnet.core.ids import PeerId
from linnet.overlay.trackerless.sketch import CountMin

REFRESH_COUNTS = 200
REFRESH_ROUNDS = 5
"""After so many ids or rounds the quantile is computed anew."""


class StreamSampler:
    """The memory of a node: ids that it counted and was offered, each with the same chance."""

    __slots__ = ("_members", "_places", "_quantile", "_rng", "_rounds", "_size", "_sketch", "_stale", "_tau")

    def __init__(self, size: int, sketch: CountMin, rng: Random, tau: float) -> None:
        self._size = size
        self._sketch = sketch
        self._rng = rng
        self._tau = tau
        self._members: list[PeerId] = []
        self._places: dict[PeerId, int] = {}
        """Where each member stands in the list."""
        self._quantile = 0.0
        self._stale = REFRESH_COUNTS
        self._rounds = 0

    @property
    def members(self) -> tuple[PeerId, ...]:
        """Whom it holds."""
        return tuple(self._members)

    def __contains__(self, peer: PeerId) -> bool:
        return peer in self._places

    def __iter__(self) -> Iterator[PeerId]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    @property
    def is_sparse(self) -> bool:
        """Whether less than half of its places are taken: then it lets in whoever is offered."""
        return 2 * len(self._members) < self._size

    def count(self, peer: PeerId) -> None:
        """An id appeared in the stream."""
        self._sketch.count(peer)
        self._stale += 1

    def offer(self, peer: PeerId) -> PeerId | None:
        """Let an id in, the less likely the more often it appeared; returns whom it replaces."""
        if peer in self._places:
            return None
        if not self.is_sparse and self._rng.random() >= self._chance(peer):
            return None
        if len(self._members) < self._size:
            self._places[peer] = len(self._members)
            self._members.append(peer)
            return None
        place = self._crowded()
        evicted = self._members[place]
        self._members[place] = peer
        del self._places[evicted]
        self._places[peer] = place
        return evicted

    def remove(self, peer: PeerId) -> bool:
        """A member is gone; its place stays free until another is offered. False if it was none."""
        place = self._places.pop(peer, None)
        if place is None:
            return False
        last = self._members.pop()
        if last != peer:
            self._members[place] = last
            self._places[last] = place
        return True

    def draw(self) -> PeerId | None:
        """One member, each as likely as any: the output of the sampler."""
        if not self._members:
            return None
        return self._members[int(self._rng.random() * len(self._members))]

    def draw_rare(self) -> PeerId | None:
        """Of two members drawn alike the one that was seen less often: rather no liar."""
        one, other = self.draw(), self.draw()
        if one is None or other is None:
            return None
        return one if self._sketch.estimate(one) <= self._sketch.estimate(other) else other

    def sample(self, size: int) -> list[PeerId]:
        """So many different members, or as many as there are."""
        return self._rng.sample(self._members, min(size, len(self._members)))

    def round(self) -> None:
        """A round of gossip went by."""
        self._rounds += 1

    def halve(self) -> None:
        """Let what was counted so far weigh half."""
        self._sketch.halve()
        self._stale = REFRESH_COUNTS

    def _crowded(self) -> int:
        """The place of the member that gives way."""
        one, other = int(self._rng.random() * self._size), int(self._rng.random() * self._size)
        seen = self._sketch.estimate
        return one if seen(self._members[one]) >= seen(self._members[other]) else other

    def _chance(self, peer: PeerId) -> float:
        """How likely an id is let in."""
        if not self._quantile or self._stale >= REFRESH_COUNTS or self._rounds >= REFRESH_ROUNDS:
            self._stale = self._rounds = 0
            self._quantile = self._sketch.quantile(self._tau)
        seen = self._sketch.estimate(peer)
        return 1.0 if seen <= self._quantile else self._quantile / seen
