from __future__ import annotations

from itertools import combinations
from math import dist
from random import Random
from statistics import fmean, median

import pytest

from linnet.overlay.locality import SAMPLES, Coordinates, NearLinks
from linnet.overlay.regular_graph import RegularGraph


def world(nodes: int, degree: int, seed: int) -> tuple[RegularGraph[int], list[tuple[float, float]]]:
    rng = Random(seed)
    topology: RegularGraph[int] = RegularGraph(degree, rng)
    for node in range(nodes):
        topology.join_node(node)
    return topology, [(rng.random(), rng.random()) for _ in range(nodes)]


def test_near_links_get_nearer_and_the_others_stay() -> None:
    topology, places = world(200, 4, seed=1)
    links = NearLinks(topology, Random(2))

    def rtt(a: int, b: int) -> float:
        return dist(places[a], places[b])

    links.exchange_links(lambda a, b: None)
    assert fmean(len(links.near_neighbors(node)) for node in topology) > 1.7
    kept = {node: set(topology.neighbors(node)) - set(links.near_neighbors(node)) for node in topology}
    before = fmean(rtt(a, b) for a, b in topology.edges())
    for _ in range(25):
        changed = links.exchange_links(rtt)
        assert len(set(changed)) == len(changed)
        assert {len(topology.neighbors(node)) for node in topology} == {4}
        assert all(topology.has_path(0, node) for node in topology)
        for node in topology:
            assert len(links.near_neighbors(node)) <= 2
            assert set(topology.neighbors(node)) - set(links.near_neighbors(node)) == kept[node]
    after = fmean(rtt(a, b) for a, b in topology.edges())
    near = fmean(rtt(a, b) for a in topology for b in links.near_neighbors(a))
    assert after < 0.75 * before
    assert near < 0.4 * before


def test_rounds_come_to_rest() -> None:
    topology, places = world(60, 6, seed=3)
    links = NearLinks(topology, Random(4))
    counts = [len(links.exchange_links(lambda a, b: dist(places[a], places[b]))) for _ in range(80)]
    assert counts[0] > 20
    assert sum(counts[-10:]) < counts[0]


def test_nothing_known_nothing_exchanged() -> None:
    topology, _ = world(30, 4, seed=5)
    before = topology.edges()
    assert NearLinks(topology, Random(6)).exchange_links(lambda a, b: None) == []
    assert topology.edges() == before


def test_it_follows_nodes_that_come_and_go() -> None:
    topology, places = world(40, 4, seed=7)
    links = NearLinks(topology, Random(8))
    rng = Random(9)
    for step in range(60):
        topology.remove_node(rng.choice(list(topology)))
        topology.join_node(40 + step)
        places.append((rng.random(), rng.random()))
        links.exchange_links(lambda a, b: dist(places[a], places[b]))
        for node in topology:
            assert all(node in links.near_neighbors(other) for other in links.near_neighbors(node))
            assert set(links.near_neighbors(node)) <= set(topology.neighbors(node))
            assert len(topology.neighbors(node)) == 4


def test_unmeasured_pairs_are_estimated_from_few_samples() -> None:
    rng = Random(1)
    nodes = 60
    places = [(rng.random(), rng.random()) for _ in range(nodes)]
    heights = [rng.uniform(0.001, 0.01) for _ in range(nodes)]

    def rtt(a: int, b: int) -> float:
        return 0.2 * dist(places[a], places[b]) + heights[a] + heights[b]

    coordinates: Coordinates[int] = Coordinates(Random(2))
    for a in range(nodes):
        for b in rng.sample([other for other in range(nodes) if other != a], 6):
            coordinates.observe_rtt(a, b, rtt(a, b))
    for _ in range(60):
        coordinates.relax_nodes(range(nodes))
    errors = []
    for a, b in combinations(range(nodes), 2):
        estimate = coordinates.estimate_rtt(a, b)
        assert estimate is not None
        errors.append(abs(estimate - rtt(a, b)) / rtt(a, b))
    assert median(errors) < 0.15


def test_what_was_measured_is_told_as_it_is() -> None:
    coordinates: Coordinates[str] = Coordinates(Random(1))
    assert coordinates.estimate_rtt("a", "b") is None
    coordinates.observe_rtt("a", "b", 0.08)
    assert coordinates.estimate_rtt("a", "b") == coordinates.estimate_rtt("b", "a") == 0.08
    coordinates.observe_rtt("a", "b", 0.05)
    assert coordinates.estimate_rtt("a", "b") == 0.05


def test_only_the_newest_samples_are_kept() -> None:
    coordinates: Coordinates[int] = Coordinates(Random(1))
    for other in range(1, SAMPLES + 2):
        coordinates.observe_rtt(0, other, 9.0)
    assert coordinates.estimate_rtt(0, 2) == 9.0
    assert coordinates.estimate_rtt(0, 1) != 9.0


def test_a_node_that_is_gone_is_forgotten() -> None:
    coordinates: Coordinates[str] = Coordinates(Random(1))
    coordinates.observe_rtt("a", "b", 0.08)
    coordinates.observe_rtt("b", "c", 0.01)
    coordinates.forget_node("b")
    assert coordinates.estimate_rtt("b", "c") is None
    coordinates.relax_nodes(["a", "b", "c"])
    assert coordinates.estimate_rtt("a", "c") is not None
    assert coordinates.estimate_rtt("b", "c") is None


@pytest.mark.parametrize("rtt", [0.0, 1e-9, 1e6])
def test_foolish_times_do_no_harm(rtt: float) -> None:
    coordinates: Coordinates[str] = Coordinates(Random(1))
    for _ in range(100):
        coordinates.observe_rtt("a", "b", rtt)
        coordinates.observe_rtt("b", "a", rtt)
    coordinates.observe_rtt("a", "c", 0.05)
    estimate = coordinates.estimate_rtt("b", "c")
    assert estimate is not None
    assert 0 <= estimate < 1e7
