"""The nodes of a scenario, and the overlay that they form."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.sim.streams.world import Overlay, StreamScenario, StreamWorld
from linnet.testing.networks import RowTrace, named_peer

PEERS = [named_peer(str(number)) for number in range(8)]


def overlay(degrees: list[int], degree: int) -> Overlay:
    """An overlay of nodes with these many neighbours; who they are does not matter here."""
    return Overlay({peer: tuple(PEERS[:count]) for peer, count in zip(PEERS, degrees, strict=False)}, degree)


@pytest.mark.parametrize(
    ("degrees", "degree", "regular"),
    [
        ([4, 4, 4, 4, 4, 4], 4, True),
        ([4, 4, 4, 4, 4, 3], 4, False),
        ([4, 4, 4, 4, 4, 5], 4, False),
        ([2, 2, 2], 4, True),
        ([2, 2, 1], 4, False),
        ([3, 3, 3, 3, 2], 3, True),
        ([3, 3, 3, 2, 2], 3, False),
        ([3, 3, 3, 3, 4], 3, False),
    ],
)
def test_regular_means_the_degree_as_far_as_numbers_allow(
    degrees: list[int], degree: int, regular: bool
) -> None:
    assert overlay(degrees, degree).is_regular() is regular


@given(st.lists(st.integers(0, 6), min_size=2, max_size=8))
def test_degrees_count_every_node(degrees: list[int]) -> None:
    assert overlay(degrees, 4).degrees() == Counter(degrees)


def test_nodes_are_spread_evenly_and_the_tracker_is_where_it_was_put() -> None:
    world = StreamWorld(StreamScenario(nodes=48), RowTrace())
    places = Counter(world.network.region(peer) for peer in world.peers)
    assert set(places.values()) == {3}
    assert len(places) == 16
    again = StreamWorld(StreamScenario(nodes=48), RowTrace())
    assert [world.network.region(peer) for peer in world.peers] == [
        again.network.region(peer) for peer in again.peers
    ]
    other = StreamWorld(StreamScenario(nodes=48, seed=2), RowTrace())
    assert [world.network.region(peer) for peer in world.peers] != [
        other.network.region(peer) for peer in other.peers
    ]


@pytest.mark.parametrize(("nodes", "mean_ms"), [(32, 70.85), (64, 69.73), (128, 69.18)])
def test_the_mean_of_pairs_leaves_a_node_and_itself_out(nodes: int, mean_ms: float) -> None:
    world = StreamWorld(StreamScenario(nodes=nodes), RowTrace())
    assert world.pair_mean() * 1000 == pytest.approx(mean_ms, abs=0.01)


def test_an_overlay_is_seen_alike_from_both_ends() -> None:
    world = StreamWorld(StreamScenario(nodes=20), RowTrace())
    world.join()
    assert world.settle(lambda done: None)
    built = world.overlay()
    edges = world.edges(built)
    assert len(edges) == 20 * 4
    assert all((second, first) in edges for first, second in edges)
    assert all(second in world.network.linked(first) for first, second in edges)
    assert world.control_messages > 20 * 3
    assert world.converged_at is not None


def test_a_node_that_is_down_has_no_neighbors() -> None:
    world = StreamWorld(StreamScenario(nodes=8), RowTrace())
    world.join()
    world.settle(lambda done: None)
    world.network.crash(world.peers[0])
    assert world.overlay().neighbors[world.peers[0]] == ()


@pytest.mark.parametrize("settle_limit", [1.0, 1.1, 1.3])
def test_settling_ends_at_its_limit_where_the_clock_rounds_it_down(settle_limit: float) -> None:
    # Limits below the time that counts as calm. With the last two the clock stays below what was asked for.
    world = StreamWorld(StreamScenario(nodes=4, join=0.05, settle_limit=settle_limit), RowTrace())
    world.join()
    joined = world.network.elapsed
    looks: list[float] = []

    def look(done: float) -> None:
        looks.append(done)
        assert len(looks) <= 2

    world.settle(look)
    assert world.network.elapsed == pytest.approx(joined + settle_limit, abs=1e-6)
