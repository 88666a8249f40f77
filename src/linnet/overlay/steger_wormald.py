"""Random regular graphs made at once, as a baseline for the graph that grows.

The algorithm of Steger and Wormald (1999), which the tracker's is modelled on (Juslenius 2021,
section 4.2.1). It needs all nodes from the start, so it is of no use to a tracker.
"""

from __future__ import annotations

from itertools import combinations
from random import Random

_TRIES = 64
"""Draws without a suitable pair before all pairs that remain are looked at."""


def regular_graph(nodes: int, degree: int, rng: Random) -> list[tuple[int, ...]]:
    """The neighbours of each of `nodes` nodes in a random `degree`-regular graph.

    Raises `ValueError` if there is no such graph.
    """
    if not 0 <= degree < nodes or nodes * degree % 2:
        raise ValueError(f"no graph has {nodes} nodes of degree {degree}")
    while True:
        adjacent = _attempt(nodes, degree, rng)
        if adjacent is not None:
            return [tuple(neighbors) for neighbors in adjacent]


def _attempt(nodes: int, degree: int, rng: Random) -> list[dict[int, None]] | None:
    """Pair points, `degree` of them for each node, until none are left; None if some cannot be."""
    points = [node for node in range(nodes) for _ in range(degree)]
    adjacent: list[dict[int, None]] = [{} for _ in range(nodes)]
    while points:
        pair = _suitable_pair(points, adjacent, rng)
        if pair is None:
            return None
        a, b = (points[place] for place in pair)
        for place in sorted(pair, reverse=True):
            points[place] = points[-1]
            points.pop()
        adjacent[a][b] = None
        adjacent[b][a] = None
    return adjacent


def _suitable_pair(points: list[int], adjacent: list[dict[int, None]], rng: Random) -> tuple[int, int] | None:
    """The places of two points whose nodes differ and are not adjacent."""

    def suits(i: int, j: int) -> bool:
        return points[i] != points[j] and points[j] not in adjacent[points[i]]

    for _ in range(_TRIES):
        i, j = int(rng.random() * len(points)), int(rng.random() * len(points))
        if suits(i, j):
            return i, j
    suitable = [(i, j) for i, j in combinations(range(len(points)), 2) if suits(i, j)]
    return rng.choice(suitable) if suitable else None
