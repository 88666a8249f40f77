"""Events over large rings: all are reached while it is whole, in few hops, and most right after a failure."""

from __future__ import annotations

import os

import pytest

from linnet.sim.overlay.ring_dissemination import LargeRing, RingPlan, spread_over_ring


@pytest.mark.parametrize(("nodes", "fanout"), [(3, 2), (5, 3), (100, 2), (300, 3), (300, 5)])
def test_a_whole_ring_reaches_all_with_as_many_copies_as_the_fanout(nodes: int, fanout: int) -> None:
    figures = spread_over_ring(RingPlan(nodes=nodes, fanout=fanout, shortcuts=4))
    assert figures.hit_ratio == 1.0
    assert figures.expected == 5 * (nodes - 1)
    assert figures.max_hops <= nodes
    assert 1.0 <= figures.copies_each <= 1.02 * fanout * nodes / (nodes - 1)
    if nodes >= 100:
        assert figures.copies_each == pytest.approx(fanout, abs=0.06)


def test_hops_grow_with_the_logarithm() -> None:
    means = [spread_over_ring(RingPlan(nodes=nodes, events=3)).mean_hops for nodes in (100, 1000)]
    assert 3.0 < means[0] < 5.0
    assert 5.0 < means[1] < 7.5


def test_spares_bridge_most_gaps() -> None:
    whole = spread_over_ring(RingPlan(nodes=1000, failed=0.1, events=3))
    none = spread_over_ring(RingPlan(nodes=1000, failed=0.3, spares=1, events=3))
    some = spread_over_ring(RingPlan(nodes=1000, failed=0.3, events=3))
    assert whole.hit_ratio > 0.995
    assert none.hit_ratio < some.hit_ratio
    assert some.hit_ratio > 0.97


def test_who_is_silent_is_reached_and_passes_nothing_on() -> None:
    ring = LargeRing(RingPlan(nodes=30, shortcuts=0, spares=1, fanout=2))
    assert len(ring.reached(0)) == 30
    ring.silence((-1, 3))
    reached = ring.reached(0)
    assert sorted(reached) == [0, 1, 2, 3, 29], "none beyond either of them"
    assert reached[3] == 3
    assert sorted(ring.reached(3)) == list(range(30)), "its own it sends"


@pytest.mark.skipif(not os.environ.get("LINNET_SOAK"), reason="ten thousand members")
def test_ten_thousand_members_are_reached_in_few_hops() -> None:
    assert spread_over_ring(RingPlan(nodes=10_000, events=3)).mean_hops <= 8.5
