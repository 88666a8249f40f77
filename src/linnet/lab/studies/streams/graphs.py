"""Overlays as graphs, without the nodes: what shortest paths say where nothing need be simulated.

In a network whose nodes take no time a flood takes the shortest paths, so the model and the simulation
are the same where both exist (`linnet.sim.streams.tally` gives both). It also reaches where the
simulation does not: graphs that no tracker would build, and 100,000 nodes.
"""

from __future__ import annotations

from itertools import chain

import numpy as np
from numpy.typing import NDArray

from linnet.overlay.regular_graph import RegularGraph, steger_wormald
from linnet.sim.links import LatencyTable
from linnet.sim.seeded_random import named_luck
from linnet.sim.streams.shortest_paths import Graph, most_links, path_sums

GROWN = "grown"
"""The tracker's own class, one node joining after another."""
STATIC = "static"
"""A random regular graph made at once (Steger and Wormald), which no join ever changes."""
LATTICE = "lattice"
"""A ring in which everyone knows the next on both sides: regular, static, and not random."""
KINDS = (GROWN, STATIC, LATTICE)

SAMPLED = "sampled"
"""Grown, and looked at from some nodes only."""


def links_of(kind: str, nodes: int, degree: int, seed: int) -> NDArray[np.int64]:
    """Pairs of neighbours, both ways, in a graph of a kind."""
    luck = named_luck(seed, f"graph/{kind}")
    if kind in (GROWN, SAMPLED):
        topology: RegularGraph[int] = RegularGraph(degree, luck)
        for node in range(nodes):
            topology.join_node(node)
        pairs = np.array(topology.edges(), dtype=np.int64)
    elif kind == STATIC:
        neighbors = steger_wormald(nodes, degree - degree * nodes % 2, luck)
        ends = chain.from_iterable(neighbors)
        origins = np.repeat(np.arange(nodes), [len(some) for some in neighbors])
        return np.stack([origins, np.fromiter(ends, np.int64, len(origins))], axis=1)
    elif kind == LATTICE:
        steps = range(1, degree // 2 + 1)
        pairs = np.array([(node, (node + step) % nodes) for node in range(nodes) for step in steps])
    else:
        raise ValueError(f"{kind} is no kind of graph")
    return np.concatenate([pairs, pairs[:, ::-1]])


def places_of(nodes: int, latency: LatencyTable, seed: int) -> NDArray[np.int64]:
    """The number of each node's region: as many in each, by the same draw as in a simulation."""
    places = [number % len(latency.regions) for number in range(nodes)]
    named_luck(seed, "places").shuffle(places)
    return np.array(places, dtype=np.int64)


def delays_of(latency: LatencyTable) -> NDArray[np.int64]:
    """Microseconds from region to region."""
    return np.array(
        [
            [round(latency.between(origin, target) * 1e6) for target in latency.regions]
            for origin in latency.regions
        ],
        dtype=np.int64,
    )


def measure_graph(
    kind: str, nodes: int, degree: int, seed: int, latency: LatencyTable, sources: int = 0
) -> dict[str, dict[int, int]]:
    """Shortest paths and shape of a graph, from every node or from so many that the seed draws."""
    links = links_of(kind, nodes, degree, seed)
    places = places_of(nodes, latency, seed)
    origins, targets = links[:, 0], links[:, 1]
    delays = delays_of(latency)[places[origins], places[targets]]
    graph = Graph(nodes, origins, targets, delays)
    drawn = named_luck(seed, "sampled").sample(range(nodes), min(sources, nodes)) if sources else None
    paths = path_sums(graph, None if drawn is None else dict.fromkeys(drawn, 1))
    diameter = most_links(graph, sources or None)
    counts = np.bincount(np.bincount(origins, minlength=nodes))
    return {
        "path_delay": {0: paths.microseconds},
        "paths": {0: paths.pairs},
        "longest": {0: paths.longest},
        "diameter": {0: -1 if diameter is None else diameter},
        "links": {0: len(links)},
        "near_links": {0: int((places[origins] == places[targets]).sum())},
        "link_delay": {0: int(delays.sum())},
        "degrees": {degree: int(count) for degree, count in enumerate(counts) if count},
    }


def pair_counts(nodes: int, degree: int, seeds: list[int]) -> NDArray[np.int64]:
    """In how many of the graphs grown from these seeds nodes a and b, with a < b, are neighbours."""
    counts = np.zeros((nodes, nodes), dtype=np.int64)
    for seed in seeds:
        links = links_of(GROWN, nodes, degree, seed)
        forward = links[links[:, 0] < links[:, 1]]
        counts[forward[:, 0], forward[:, 1]] += 1
    return counts
