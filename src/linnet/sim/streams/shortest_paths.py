"""The optimum of an overlay: shortest paths over its links, and bounds on its diameter.

A flood arrives along the fastest path, so the mean of all shortest paths is the delay of a network whose
nodes take no time (Juslenius 2021, section 5.4.4). Needs the extra ``sim``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor, log
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from linnet.core.errors import LocalError
from linnet.core.ids import PeerId

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Edges = Mapping[tuple[PeerId, PeerId], float]
"""Seconds from node to node, for each direction of each link of an overlay."""


class MissingExtra(LocalError):
    """A library that only simulations need is not installed."""

    def __init__(self, library: str) -> None:
        super().__init__(f"{library} is not installed; `pip install linnet[sim]` brings it")


def mean_path(nodes: Sequence[PeerId], edges: Edges, weights: Mapping[PeerId, int] | None = None) -> float:
    """Return the mean seconds of the fastest paths from the sources in `weights`, or from all nodes, to all
    other nodes.

    Each source counts as often as its weight says. Pairs without a path do not count; 0 if there is no path.
    """
    np, csgraph, sparse = libraries()
    place = {peer: number for number, peer in enumerate(nodes)}
    sources = list(nodes) if weights is None else [peer for peer, weight in weights.items() if weight > 0]
    if not sources or len(nodes) < 2:
        return 0.0
    rows = [place[origin] for origin, _ in edges]
    columns = [place[target] for _, target in edges]
    graph = sparse.csr_array((list(edges.values()), (rows, columns)), shape=(len(nodes), len(nodes)))
    indices = np.array([place[peer] for peer in sources])
    seconds = csgraph.dijkstra(graph, indices=indices)
    counted = np.isfinite(seconds)
    counted[np.arange(len(sources)), indices] = False
    times = np.array([1 if weights is None else weights[peer] for peer in sources])[:, None] * counted
    total = times.sum()
    return float((np.where(counted, seconds, 0.0) * times).sum() / total) if total else 0.0


def libraries() -> tuple[Any, Any, Any]:
    """Return numpy, scipy.sparse.csgraph and scipy.sparse; `MissingExtra` if they are not installed."""
    try:
        import numpy as np
        from scipy import sparse
        from scipy.sparse import csgraph
    except ImportError as error:
        raise MissingExtra(error.name or "scipy") from error
    return np, csgraph, sparse


def diameter_bounds(nodes: int, degree: int) -> tuple[int, int]:
    """Return Wormald's bounds on the diameter in links of a random regular graph (Juslenius 2021, Eq. 5.2).

    They hold for almost all such graphs as the number of nodes grows.
    """
    if degree < 3 or nodes < 2:
        raise ValueError("the bounds are for at least 2 nodes of degree 3 or more")
    base = degree - 1
    lower = 1 + floor(log(nodes, base)) + floor(log((degree - 2) / (6 * degree) * log(nodes), base))
    upper = 1 + ceil(log(2 * degree * nodes * log(nodes), base))
    return lower, upper


_PAIRS_AT_ONCE = 1 << 21
"""Pairs of source and node that are computed at a time."""


class Graph(Struct, frozen=True):
    """Directed links between nodes 0, 1, and so on, each with its latency."""

    nodes: int
    origins: NDArray[np.int64]
    targets: NDArray[np.int64]
    microseconds: NDArray[np.int64]


class PathSums(Struct, frozen=True):
    """Sums over all shortest paths from some sources."""

    microseconds: int
    """Over all pairs of a source and another node that it reaches, each source as often as its weight."""
    pairs: int
    """The number of these pairs, weights included."""
    longest: int
    """The longest of these paths, in microseconds."""


def path_sums(graph: Graph, sources: Mapping[int, int] | None = None) -> PathSums:
    """Sum the fastest paths from the sources, each with its weight, or from every node, to every other
    node."""
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
    """Return the diameter: the most links of any path with the fewest; None if some node is not reached.

    With only the first so many sources it is a lower bound.
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
