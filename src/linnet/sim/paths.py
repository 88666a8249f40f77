"""Shortest paths over graphs of numbered nodes, in whole microseconds: sums that any machine gets alike.

Weights are integers far below 2**53, so sums of them are exact although they are kept as doubles.
Needs the extra ``sim``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from linnet.sim.estimate import libraries

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PAIRS_AT_ONCE = 1 << 21
"""Pairs of source and node that are kept at a time."""


class Graph(Struct, frozen=True):
    """Directed links between nodes 0, 1, and so on, each with how long it takes."""

    nodes: int
    origins: NDArray[np.int64]
    targets: NDArray[np.int64]
    microseconds: NDArray[np.int64]


class PathSums(Struct, frozen=True):
    """All shortest paths from some sources, added up."""

    microseconds: int
    """Over all pairs of a source and another node that it reaches, each source as often as its weight."""
    pairs: int
    """How many these are, weights included."""
    longest: int
    """Microseconds."""


def path_sums(graph: Graph, sources: Mapping[int, int] | None = None) -> PathSums:
    """Fastest paths from the sources, each with its weight, or from every node, to every other node."""
    np, csgraph, _ = libraries()
    weights = dict.fromkeys(range(graph.nodes), 1) if sources is None else sources
    origins = np.array(list(weights), dtype=np.int64)
    total = pairs = longest = 0
    for block in _blocks(graph, origins):
        found = csgraph.dijkstra(_matrix(graph), indices=block)
        counted = np.isfinite(found)
        times = np.array([weights[int(origin)] for origin in block], dtype=np.int64)
        exact = np.where(counted, found, 0.0).astype(np.int64)
        total += int((exact.sum(axis=1) * times).sum())
        # A node reaches itself in no time, which is no path.
        pairs += int(((counted.sum(axis=1) - 1) * times).sum())
        longest = max(longest, int(exact.max(initial=0)))
    return PathSums(total, pairs, longest)


def most_links(graph: Graph, sources: int | None = None) -> int | None:
    """The diameter: most links of any path with the fewest; None if some node is not reached.

    If only the first so many sources are looked at, it is a lower bound.
    """
    np, csgraph, _ = libraries()
    most = 0
    for block in _blocks(graph, np.arange(graph.nodes if sources is None else min(sources, graph.nodes))):
        found = csgraph.dijkstra(_matrix(graph), indices=block, unweighted=True)
        if not np.isfinite(found).all():
            return None
        most = max(most, int(found.max(initial=0)))
    return most


def _matrix(graph: Graph):  # type: ignore[no-untyped-def]  # noqa: ANN202
    _, _, sparse = libraries()
    links = (graph.microseconds.astype(float), (graph.origins, graph.targets))
    return sparse.csr_array(links, shape=(graph.nodes, graph.nodes))


def _blocks(graph: Graph, origins: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    size = max(1, _PAIRS_AT_ONCE // max(1, graph.nodes))
    return [origins[at : at + size] for at in range(0, len(origins), size)]
