"""Shortest paths and bounds: what an overlay can do at best."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from tests.machines import Flooder

from linnet.core.ids import PeerId
from linnet.sim.links import LinkModel, aws_latency
from linnet.sim.network import Network
from linnet.sim.streams.shortest_paths import Graph, MissingExtra, diameter_bounds, mean_path, path_sums
from linnet.streams.commands import Publish
from linnet.testing.networks import build, named_peer, random_edges

A, B, C, D = (named_peer(name) for name in "abcd")


def test_fastest_paths_go_in_their_direction() -> None:
    """A to C is faster over B; back it is not."""
    edges = {(A, B): 1.0, (B, A): 5.0, (B, C): 1.0, (C, B): 5.0, (A, C): 3.0, (C, A): 3.0}
    assert mean_path([A, B, C], edges) == pytest.approx((1 + 2 + 4 + 1 + 3 + 4) / 6)


def test_sources_weigh_as_often_as_they_published() -> None:
    edges = {(A, B): 1.0, (B, A): 2.0}
    assert mean_path([A, B], edges, {A: 3, B: 1}) == pytest.approx((3 * 1 + 2) / 4)
    assert mean_path([A, B], edges, {A: 0, B: 1}) == pytest.approx(2.0)


def test_what_cannot_be_reached_is_not_counted() -> None:
    assert mean_path([A, B, C, D], {(A, B): 1.0, (B, A): 1.0, (C, D): 3.0, (D, C): 3.0}) == 2.0
    assert mean_path([A, B], {}) == mean_path([A], {}) == mean_path([A, B], {(A, B): 1.0}, {}) == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_a_simulated_flood_takes_the_shortest_paths(seed: int) -> None:
    """Machines that take no time: the flood's delays are Dijkstra's, for each pair and direction."""
    nodes = 48
    network = Network(seed, LinkModel(aws_latency()))
    machines: dict[int, Flooder] = {}

    def machine() -> Flooder:
        return machines.setdefault(len(machines), Flooder())

    peers = build(network, [f"n{n}" for n in range(nodes)], machine, random_edges(seed, nodes, 4))
    began = {}
    for number, peer in enumerate(peers):
        began[number] = network.now
        network.ask(peer, Publish("", (b"%d" % number,)))
        network.run_until_quiet()
    edges = {(peer, other): network.latency(peer, other) for peer in peers for other in network.linked(peer)}
    ends = np.array([[peers.index(peer), peers.index(other)] for peer, other in edges])
    graph = Graph(nodes, ends[:, 0], ends[:, 1], np.array([round(1e6 * each) for each in edges.values()]))
    for number, peer in enumerate(peers):
        delays = [machine.seen[number] - began[number] for machine in machines.values()]
        assert sum(delays) / (nodes - 1) == pytest.approx(mean_path(peers, edges, {peer: 1}), abs=1e-5)
        sums = path_sums(graph, {number: 1})
        assert max(delays) == pytest.approx(sums.longest / 1e6, abs=1e-5)
        assert sums.pairs == nodes - 1


def test_sends_of_a_plain_flood_follow_from_the_graph() -> None:
    """Every node sends to each of its links but the one it heard from: sum of degrees - (n - 1)."""
    nodes = 64
    network = Network(5, LinkModel(aws_latency()))
    peers: list[PeerId] = build(network, [f"n{n}" for n in range(nodes)], Flooder, random_edges(5, nodes, 4))
    degrees = sum(len(network.linked(peer)) for peer in peers)
    network.ask(peers[0], Publish("", (b"1",)))
    network.run_until_quiet()
    assert network.handled == degrees - (nodes - 1)


@pytest.mark.parametrize(
    ("nodes", "lower", "upper"),
    [(32, 2, 8), (64, 3, 8), (128, 4, 9), (256, 5, 10), (512, 5, 11), (1024, 6, 11), (2048, 6, 12)],
)
def test_bounds_of_the_diameter(nodes: int, lower: int, upper: int) -> None:
    assert diameter_bounds(nodes, 4) == (lower, upper)


@pytest.mark.parametrize(("nodes", "degree"), [(1, 4), (10, 2)])
def test_bounds_need_a_graph_that_they_are_for(nodes: int, degree: int) -> None:
    with pytest.raises(ValueError, match="the bounds are for"):
        diameter_bounds(nodes, degree)


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(MissingExtra, match=r"pip install linnet\[sim\]"):
        mean_path([A, B], {(A, B): 1.0})
