"""Deliberate topology awareness: half of each node's links near, half random.

The thesis found that the naive protocol favours near neighbours by accident, and that it pays;
it proposes two low-latency and two random neighbours for d = 4 (Juslenius 2021, chapter 6).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from random import Random
from typing import Generic, TypeVar

from linnet.overlay.topology import Topology

V = TypeVar("V", bound=Hashable)

Estimate = Callable[[V, V], float | None]
"""The round-trip time between two nodes in seconds, if anything is known of it."""

_CANDIDATES = 24
"""Nodes that are looked at for each node in a round, of which the nearest are tried."""
_TRIED = 3

_LEAST_GAIN = 0.1
"""Part of the two links' time that an exchange must save: estimates err by about as much, and a
link that is changed for nothing costs a dial."""


class NearLinks(Generic[V]):
    """Exchanges the near links of a graph for nearer ones, round by round.

    At most half of a node's links are marked as near; a link is marked when both ends have room
    for it. Two near links a-b and c-e become a-c and b-e when that saves time. So every node
    keeps its degree and its number of near links; its other links are never touched and stay as
    random as they came. `Topology.exchange` sees to it that the graph stays in one piece.
    """

    def __init__(self, topology: Topology[V], rng: Random) -> None:
        self._topology = topology
        self._rng = rng
        self._near: dict[V, dict[V, None]] = {}

    def near(self, v: V) -> tuple[V, ...]:
        """The neighbours of a node whose links may be exchanged."""
        return tuple(self._near.get(v, ()))

    def round(self, estimate: Estimate[V]) -> list[V]:
        """Exchange what pays, each node at most once; returns the nodes that have other neighbours."""
        self._mark()
        nodes = [v for v, near in self._near.items() if near]
        order = self._rng.sample(nodes, len(nodes))
        touched: dict[V, None] = {}
        for a in order:
            if a in touched:
                continue
            best = self._best(a, nodes, touched, estimate)
            if best is None:
                continue
            b, c, e = best
            if self._topology.exchange(a, b, c, e):
                self._relabel(a, b, c, e)
                touched.update(dict.fromkeys((a, b, c, e)))
        return list(touched)

    def _mark(self) -> None:
        """Drop marks of links that are gone, and mark others where both ends have room."""
        room = self._topology.degree // 2
        near = self._near
        self._near = {v: {} for v in self._topology}
        for v, marked in near.items():
            for w in marked:
                if self._topology.is_adjacent(v, w):
                    self._near[v][w] = None
        edges = self._topology.edges()
        for a, b in self._rng.sample(edges, len(edges)):
            if len(self._near[a]) < room and len(self._near[b]) < room:
                self._near[a][b] = None
                self._near[b][a] = None

    def _best(
        self, a: V, nodes: list[V], touched: dict[V, None], estimate: Estimate[V]
    ) -> tuple[V, V, V] | None:
        """The exchange of a's worst near link that saves most, as b, c, e; None if none pays."""
        links = [(time, b) for b, time in self._times(a, touched, estimate)]
        if not links:
            return None
        old, b = max(links, key=lambda link: link[0])
        found: list[tuple[float, V]] = []
        for _ in range(min(_CANDIDATES, len(nodes))):
            c = nodes[int(self._rng.random() * len(nodes))]
            time = None if c in touched or c in (a, b) or not self._topology.suits(a, c) else estimate(a, c)
            if time is not None and time < old:
                found.append((time, c))
        found.sort(key=lambda candidate: candidate[0])
        best, saved = None, 0.0
        for new, c in found[:_TRIED]:
            for e, other in self._times(c, touched, estimate):
                across = None if e in (a, b) or not self._topology.suits(b, e) else estimate(b, e)
                if across is None:
                    continue
                gain = old + other - new - across
                if gain > saved and gain > _LEAST_GAIN * (old + other):
                    best, saved = (b, c, e), gain
        return best

    def _times(self, v: V, touched: dict[V, None], estimate: Estimate[V]) -> list[tuple[V, float]]:
        """The near links of a node that may still be exchanged in this round, with their times."""
        pairs = ((w, estimate(v, w)) for w in self._near[v] if w not in touched)
        return [(w, time) for w, time in pairs if time is not None]

    def _relabel(self, a: V, b: V, c: V, e: V) -> None:
        for v, old, new in ((a, b, c), (b, a, e), (c, e, a), (e, c, b)):
            del self._near[v][old]
            self._near[v][new] = None
