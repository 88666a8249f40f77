"""Overlays without nodes: what they are like, and that a simulation agrees."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from linnet.lab.studies.streams.graphs import (
    GROWN,
    KINDS,
    LATTICE,
    SAMPLED,
    STATIC,
    delays_of,
    links_of,
    measure_graph,
    pair_counts,
    places_of,
)
from linnet.sim.links import aws_latency, constant_latency
from linnet.sim.streams.world import StreamScenario, StreamWorld
from linnet.trace.records import NullTrace

AWS = aws_latency()


@pytest.mark.parametrize("kind", [*KINDS, SAMPLED])
@pytest.mark.parametrize(("nodes", "degree"), [(32, 4), (45, 6), (20, 8)])
def test_every_kind_is_regular_symmetric_and_simple(kind: str, nodes: int, degree: int) -> None:
    links = [tuple(pair) for pair in links_of(kind, nodes, degree, 3).tolist()]
    assert len(set(links)) == len(links) == nodes * degree
    assert {(b, a) for a, b in links} == set(links)
    assert all(a != b for a, b in links)
    assert set(Counter(a for a, _ in links).values()) == {degree}


def test_an_unknown_kind_is_our_bug() -> None:
    with pytest.raises(ValueError, match="no kind"):
        links_of("tree", 8, 4, 1)


def test_nodes_are_where_a_simulation_puts_them() -> None:
    world = StreamWorld(StreamScenario(40, seed=9), NullTrace())
    regions = [world.network.region(peer) for peer in world.peers]
    assert [AWS.regions[place] for place in places_of(40, AWS, 9)] == regions
    assert delays_of(AWS)[0, 1] == 12_590


def test_a_lattice_is_measured_as_pencil_and_paper_do() -> None:
    """A ring of 12 with two neighbours on each side: 4 at one link, 4 at two, 3 at three."""
    found = measure_graph(LATTICE, 12, 4, 1, constant_latency(10))
    assert found["paths"] == {0: 12 * 11}
    assert found["path_delay"] == {0: 12 * (4 * 1 + 4 * 2 + 3 * 3) * 10_000}
    assert (found["diameter"], found["longest"]) == ({0: 3}, {0: 30_000})
    assert (found["links"], found["near_links"], found["link_delay"]) == ({0: 48}, {0: 48}, {0: 480_000})
    assert found["degrees"] == {4: 12}


def test_sampled_sources_come_close_to_all() -> None:
    everyone = measure_graph(GROWN, 300, 4, 5, AWS)
    some = measure_graph(GROWN, 300, 4, 5, AWS, sources=60)
    assert some["paths"] == {0: 60 * 299}
    means = [each["path_delay"][0] / each["paths"][0] for each in (some, everyone)]
    assert means[0] == pytest.approx(means[1], rel=0.06)
    assert some["diameter"][0] <= everyone["diameter"][0]


def test_a_static_random_graph_is_as_good_as_a_grown_one_and_a_lattice_is_not() -> None:
    means = {}
    for kind in KINDS:
        runs = [measure_graph(kind, 256, 4, seed, AWS) for seed in range(4)]
        means[kind] = sum(run["path_delay"][0] for run in runs) / sum(run["paths"][0] for run in runs)
    assert means[STATIC] == pytest.approx(means[GROWN], rel=0.1)
    assert means[LATTICE] > 3 * means[GROWN]


def test_pairs_are_counted_once_for_each_graph() -> None:
    counts = pair_counts(12, 4, [1, 2, 3])
    assert counts.sum() == 3 * 12 * 4 // 2
    assert (np.tril(counts) == 0).all()
    assert counts.max() <= 3
    one = {tuple(sorted(pair)) for pair in links_of(GROWN, 12, 4, 2).tolist()}
    assert {tuple(pair) for pair in np.argwhere(pair_counts(12, 4, [2])).tolist()} == one
