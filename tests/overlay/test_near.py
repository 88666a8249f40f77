from __future__ import annotations

from math import dist
from random import Random
from statistics import fmean

from linnet.overlay.near import NearLinks
from linnet.overlay.topology import Topology


def world(nodes: int, degree: int, seed: int) -> tuple[Topology[int], list[tuple[float, float]]]:
    rng = Random(seed)
    topology: Topology[int] = Topology(degree, rng)
    for node in range(nodes):
        topology.join(node)
    return topology, [(rng.random(), rng.random()) for _ in range(nodes)]


def test_near_links_get_nearer_and_the_others_stay() -> None:
    topology, places = world(200, 4, seed=1)
    links = NearLinks(topology, Random(2))

    def rtt(a: int, b: int) -> float:
        return dist(places[a], places[b])

    links.round(lambda a, b: None)
    assert fmean(len(links.near(node)) for node in topology) > 1.7
    kept = {node: set(topology.neighbors(node)) - set(links.near(node)) for node in topology}
    before = fmean(rtt(a, b) for a, b in topology.edges())
    for _ in range(25):
        changed = links.round(rtt)
        assert len(set(changed)) == len(changed)
        assert {len(topology.neighbors(node)) for node in topology} == {4}
        assert all(topology.reaches(0, node) for node in topology)
        for node in topology:
            assert len(links.near(node)) <= 2
            assert set(topology.neighbors(node)) - set(links.near(node)) == kept[node]
    after = fmean(rtt(a, b) for a, b in topology.edges())
    near = fmean(rtt(a, b) for a in topology for b in links.near(a))
    assert after < 0.75 * before
    assert near < 0.4 * before


def test_rounds_come_to_rest() -> None:
    topology, places = world(60, 6, seed=3)
    links = NearLinks(topology, Random(4))
    counts = [len(links.round(lambda a, b: dist(places[a], places[b]))) for _ in range(80)]
    assert counts[0] > 20
    assert sum(counts[-10:]) < counts[0]


def test_nothing_known_nothing_exchanged() -> None:
    topology, _ = world(30, 4, seed=5)
    before = topology.edges()
    assert NearLinks(topology, Random(6)).round(lambda a, b: None) == []
    assert topology.edges() == before


def test_it_follows_nodes_that_come_and_go() -> None:
    topology, places = world(40, 4, seed=7)
    links = NearLinks(topology, Random(8))
    rng = Random(9)
    for step in range(60):
        topology.leave(rng.choice(list(topology)))
        topology.join(40 + step)
        places.append((rng.random(), rng.random()))
        links.round(lambda a, b: dist(places[a], places[b]))
        for node in topology:
            assert all(node in links.near(other) for other in links.near(node))
            assert set(links.near(node)) <= set(topology.neighbors(node))
            assert len(topology.neighbors(node)) == 4
