"""Shortest paths in whole microseconds, against plain Dijkstra."""

from __future__ import annotations

from heapq import heappop, heappush
from random import Random

import numpy as np
import pytest

from linnet.sim.streams import shortest_paths as paths
from linnet.sim.streams.shortest_paths import Graph, PathSums, most_links, path_sums

Links = dict[tuple[int, int], int]


def random_links(seed: int, nodes: int, links: int) -> Links:
    luck = Random(seed)
    found: Links = {}
    for _ in range(links):
        a, b = luck.sample(range(nodes), 2)
        found[a, b] = luck.randrange(1, 200_000)
        found[b, a] = luck.randrange(1, 200_000)
    return found


def graph_of(nodes: int, links: Links) -> Graph:
    ends = np.array(list(links), dtype=np.int64)
    return Graph(nodes, ends[:, 0], ends[:, 1], np.array(list(links.values()), dtype=np.int64))


def plain_dijkstra(nodes: int, links: Links, source: int) -> dict[int, int]:
    best = {source: 0}
    waiting = [(0, source)]
    while waiting:
        cost, at = heappop(waiting)
        for (a, b), weight in links.items():
            if a == at and cost + weight < best.get(b, 1 << 60):
                best[b] = cost + weight
                heappush(waiting, (cost + weight, b))
    return best


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("at_once", [1, 40, 1 << 20])
def test_sums_are_those_of_plain_dijkstra(seed: int, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "_PAIRS_AT_ONCE", at_once)
    nodes, links = 12, random_links(seed, 12, 14)
    weights = {0: 2, 5: 1, 11: 3}
    for sources in (None, weights):
        told = dict.fromkeys(range(nodes), 1) if sources is None else sources
        found = {source: plain_dijkstra(nodes, links, source) for source in told}
        assert path_sums(graph_of(nodes, links), sources) == PathSums(
            sum(told[source] * sum(best.values()) for source, best in found.items()),
            sum(told[source] * (len(best) - 1) for source, best in found.items()),
            max(max(best.values()) for best in found.values()),
        )


def test_a_diameter_counts_links_and_not_time() -> None:
    ring = {(a, (a + step) % 10): 1000 * (a + 1) for a in range(10) for step in (1, 9)}
    assert most_links(graph_of(10, ring)) == 5
    assert most_links(graph_of(10, ring), sources=1) == 5
    assert most_links(graph_of(11, ring)) is None
