from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.overlay.steger_wormald import regular_graph


@given(st.integers(1, 24), st.integers(0, 8), st.integers(0, 2**32))
def test_every_possible_graph_is_regular_and_simple(nodes: int, degree: int, seed: int) -> None:
    if degree >= nodes or nodes * degree % 2:
        with pytest.raises(ValueError, match="no graph"):
            regular_graph(nodes, degree, Random(seed))
        return
    graph = regular_graph(nodes, degree, Random(seed))
    assert len(graph) == nodes
    for node, neighbors in enumerate(graph):
        assert len(neighbors) == len(set(neighbors)) == degree
        assert node not in neighbors
        assert all(node in graph[other] for other in neighbors)


def test_a_large_one_is_made() -> None:
    assert {len(neighbors) for neighbors in regular_graph(1000, 4, Random(1))} == {4}


def test_pairs_are_as_frequent_as_in_the_growing_graph() -> None:
    nodes, repeats = 12, 3000
    rng = Random(3)
    together = sum(1 in regular_graph(nodes, 4, rng)[0] for _ in range(repeats))
    assert together / repeats == pytest.approx(4 / (nodes - 1), rel=0.08)
