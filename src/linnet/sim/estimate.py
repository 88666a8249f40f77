"""What an overlay could do at best: shortest paths over its links, and bounds on its diameter.

A flood arrives along the fastest path, so the mean of all shortest paths is the delay of a network
whose nodes take no time (Juslenius 2021, section 5.4.4). Needs the extra ``sim``.
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


class Estimate(Struct, frozen=True):
    """Shortest paths from some sources to all other nodes, in seconds and links."""

    mean: float
    """Seconds over all (source, other node), each source as often as its weight says."""
    longest: float
    mean_hops: float
    """Links of the fastest paths, which are not those with the fewest."""
    max_hops: int
    reached: int
    """Pairs of source and other node between which there is a path, weights aside."""


def estimate(nodes: Sequence[PeerId], edges: Edges, weights: Mapping[PeerId, int] | None = None) -> Estimate:
    """Shortest paths from the sources in `weights`, or from every node, to every other node.

    Pairs without a path are left out of the means; `reached` tells how many there are with one.
    """
    np, csgraph, sparse = libraries()
    place = {peer: number for number, peer in enumerate(nodes)}
    sources = list(nodes) if weights is None else [peer for peer, weight in weights.items() if weight > 0]
    if not sources or len(nodes) < 2:
        return Estimate(0.0, 0.0, 0.0, 0, 0)
    rows = [place[origin] for origin, _ in edges]
    columns = [place[target] for _, target in edges]
    graph = sparse.csr_array((list(edges.values()), (rows, columns)), shape=(len(nodes), len(nodes)))
    indices = np.array([place[peer] for peer in sources])
    seconds, before = csgraph.dijkstra(graph, indices=indices, return_predecessors=True)
    hops = _hops(np, seconds, before)
    counted = np.isfinite(seconds)
    counted[np.arange(len(sources)), indices] = False
    times = np.array([1 if weights is None else weights[peer] for peer in sources])[:, None] * counted
    total = times.sum()
    if not total:
        return Estimate(0.0, 0.0, 0.0, 0, 0)
    return Estimate(
        float((np.where(counted, seconds, 0.0) * times).sum() / total),
        float(seconds[counted].max()),
        float((hops * times).sum() / total),
        int(hops[counted].max()),
        int(counted.sum()),
    )


def _hops(np: Any, seconds: NDArray[np.float64], before: NDArray[np.int32]) -> NDArray[np.int64]:  # noqa: ANN401
    """Links of each fastest path: one more than those of the node before, nearest nodes first."""
    hops = np.zeros(seconds.shape, dtype=np.int64)
    rows = np.arange(len(seconds))
    order = np.argsort(seconds, axis=1, kind="stable")
    for rank in range(order.shape[1]):
        column = order[:, rank]
        previous = before[rows, column]
        hops[rows, column] = np.where(previous >= 0, hops[rows, np.maximum(previous, 0)] + 1, 0)
    return hops  # type: ignore[no-any-return]


def libraries() -> tuple[Any, Any, Any]:
    """numpy, scipy.sparse.csgraph and scipy.sparse; `MissingExtra` if they are not installed."""
    try:
        import numpy as np
        from scipy import sparse
        from scipy.sparse import csgraph
    except ImportError as error:
        raise MissingExtra(error.name or "scipy") from error
    return np, csgraph, sparse


def diameter_bounds(nodes: int, degree: int, epsilon: float = 0.0) -> tuple[int, int]:
    """Wormald's bounds on the diameter in links of a random regular graph (Juslenius 2021, Eq. 5.2).

    They hold for almost all such graphs as the number of nodes grows.
    """
    if degree < 3 or nodes < 2:
        raise ValueError("the bounds are for at least 2 nodes of degree 3 or more")
    base = degree - 1
    lower = 1 + floor(log(nodes, base)) + floor(log((degree - 2) / (6 * degree) * log(nodes), base))
    upper = 1 + ceil(log((2 + epsilon) * degree * nodes * log(nodes), base))
    return lower, upper
