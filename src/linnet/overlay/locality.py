"""Deliberate topology awareness: half of each node's links near, half random.

The thesis found that the naive protocol favours near neighbours by accident, and that it pays; it proposes
two low-latency and two random neighbours for d = 4 (Juslenius 2021, chapter 6). The distance of two nodes is
estimated by Vivaldi coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from math import sqrt
from random import Random
from typing import Generic, TypeVar

from linnet.overlay.regular_graph import RegularGraph

V = TypeVar("V", bound=Hashable)

Estimate = Callable[[V, V], float | None]
"""Returns the round-trip time between two nodes in seconds; None if nothing is known of it."""

_CANDIDATES = 24
"""Candidates for each node in a round, of which the nearest are tried."""
_TRIED = 3

_LEAST_GAIN = 0.1
"""Share of the two links' time that an exchange must save: estimates err by about as much, and a link that is
changed for nothing costs a dial."""


class NearLinks(Generic[V]):
    """Exchanges the near links of a graph for nearer ones, round by round.

    At most half of a node's links are marked as near; a link is marked when both ends have room for it. Two
    near links a-b and c-e become a-c and b-e when that saves time. So every node keeps its degree and its
    number of near links; its other links are never touched and stay as random as they were.
    `RegularGraph.exchange_edges` keeps the graph connected.
    """

    def __init__(self, topology: RegularGraph[V], rng: Random) -> None:
        self._topology = topology
        self._rng = rng
        self._near: dict[V, dict[V, None]] = {}

    def near_neighbors(self, v: V) -> tuple[V, ...]:
        """Return the neighbours of a node whose links may be exchanged."""
        return tuple(self._near.get(v, ()))

    def exchange_links(self, estimate: Estimate[V]) -> list[V]:
        """Exchange links where it saves time, each node at most once; return the nodes whose neighbours
        changed."""
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
            if self._topology.exchange_edges(a, b, c, e):
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
        """Return the exchange of a's worst near link that saves most, as b, c, e; None if none does."""
        links = [(time, b) for b, time in self._times(a, touched, estimate)]
        if not links:
            return None
        old, b = max(links, key=lambda link: link[0])
        found: list[tuple[float, V]] = []
        for _ in range(min(_CANDIDATES, len(nodes))):
            c = nodes[int(self._rng.random() * len(nodes))]
            time = (
                None
                if c in touched or c in (a, b) or not self._topology.may_connect(a, c)
                else estimate(a, c)
            )
            if time is not None and time < old:
                found.append((time, c))
        found.sort(key=lambda candidate: candidate[0])
        best, saved = None, 0.0
        for new, c in found[:_TRIED]:
            for e, other in self._times(c, touched, estimate):
                across = None if e in (a, b) or not self._topology.may_connect(b, e) else estimate(b, e)
                if across is None:
                    continue
                gain = old + other - new - across
                if gain > saved and gain > _LEAST_GAIN * (old + other):
                    best, saved = (b, c, e), gain
        return best

    def _times(self, v: V, touched: dict[V, None], estimate: Estimate[V]) -> list[tuple[V, float]]:
        """Return the near links of a node that may still be exchanged in this round, with their times."""
        pairs = ((w, estimate(v, w)) for w in self._near[v] if w not in touched)
        return [(w, time) for w, time in pairs if time is not None]

    def _relabel(self, a: V, b: V, c: V, e: V) -> None:
        for v, old, new in ((a, b, c), (b, a, e), (c, e, a), (e, c, b)):
            del self._near[v][old]
            self._near[v][new] = None


_GAIN = 0.25
"""How far one sample moves a coordinate, and its error: c_c and c_e of the paper, section 3.3."""

_LEAST_HEIGHT = 1e-5
"""Seconds; a height of zero could never grow, since it is scaled."""

_LEAST_RTT = 1e-6
"""Seconds; the error of a sample is relative to it."""

SAMPLES = 16
"""Measured peers kept for each node, the newest: more than the links it has at a time, since four samples do
not determine the four numbers of a coordinate."""


class _Place:
    """The coordinates of a node: three dimensions, the height of its own access link, and the error."""

    __slots__ = ("error", "height", "x", "y", "z")

    def __init__(self) -> None:
        self.x = self.y = self.z = 0.0
        self.height = _LEAST_HEIGHT
        self.error = 1.0


class Coordinates(Generic[V]):
    """Network coordinates of nodes, from the round-trip times (in seconds) that they report.

    Vivaldi (Dabek, Cox, Kaashoek, Morris: Vivaldi, a decentralized network coordinate system, 2004) with
    heights (section 5.4). Here the tracker holds all coordinates; it can use each sample more than once.
    """

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._places: dict[V, _Place] = {}
        self._samples: dict[V, dict[V, float]] = {}

    def observe_rtt(self, a: V, b: V, rtt: float) -> None:
        """Take in the round-trip time that node a has measured to b."""
        samples = self._samples.setdefault(a, {})
        samples.pop(b, None)
        samples[b] = rtt
        if len(samples) > SAMPLES:
            del samples[next(iter(samples))]
        self._move(a, b, rtt)

    def relax_nodes(self, nodes: Iterable[V]) -> None:
        """Use all samples of these nodes once more."""
        for a in nodes:
            for b, rtt in self._samples.get(a, {}).items():
                if b in self._places:
                    self._move(a, b, rtt)

    def forget_node(self, v: V) -> None:
        """Forget a node that is gone."""
        self._places.pop(v, None)
        self._samples.pop(v, None)

    def estimate_rtt(self, a: V, b: V) -> float | None:
        """Return the round-trip time of two nodes: measured, else estimated; None if nothing is known."""
        measured = self._samples.get(a, {}).get(b) or self._samples.get(b, {}).get(a)
        if measured is not None:
            return measured
        one, other = self._places.get(a), self._places.get(b)
        if one is None or other is None:
            return None
        return _distance(one, other)

    def _place(self, v: V) -> _Place:
        place = self._places.get(v)
        if place is None:
            place = self._places[v] = _Place()
        return place

    def _move(self, a: V, b: V, rtt: float) -> None:
        one, other = self._place(a), self._place(b)
        rtt = max(rtt, _LEAST_RTT)
        x, y, z = one.x - other.x, one.y - other.y, one.z - other.z
        flat = sqrt(x * x + y * y + z * z)
        distance = flat + one.height + other.height
        weight = one.error / (one.error + other.error)
        wrong = abs(distance - rtt) / rtt
        one.error = min(1.0, wrong * _GAIN * weight + one.error * (1 - _GAIN * weight)) or 1e-9
        force = _GAIN * weight * (rtt - distance)
        height = one.height + other.height
        if x == y == z == 0.0:
            # Two nodes at one point are pushed apart in a random direction (section 3.2).
            x, y, z = (self._rng.uniform(-height, height) for _ in range(3))
            flat = sqrt(x * x + y * y + z * z)
        length = flat + height
        one.x += force * x / length
        one.y += force * y / length
        one.z += force * z / length
        one.height = max(_LEAST_HEIGHT, one.height + force * height / length)


def _distance(one: _Place, other: _Place) -> float:
    x, y, z = one.x - other.x, one.y - other.y, one.z - other.z
    return sqrt(x * x + y * y + z * z) + one.height + other.height
