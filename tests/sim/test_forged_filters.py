"""No filter makes its owner a hub, whatever it shows; and the bench sees one where there is one."""

from __future__ import annotations

import pytest

from linnet.sim.forged_filters import Forgery, ForgeryFigures, ForgeryPlan, measure_forgery


@pytest.mark.parametrize("forgery", Forgery)
def test_no_forger_is_kept_by_three_times_as_many_as_the_mean_node(forgery: Forgery) -> None:
    figures = measure_forgery(ForgeryPlan(forgery, communities=5, members=12, forgers=6, rounds=10))
    assert figures.mean_alike > 5
    assert figures.mean_fingers > 1
    assert figures.ratio <= 3.0


def test_the_same_seed_gives_the_same_figures() -> None:
    plan = ForgeryPlan(Forgery.FULL, communities=3, members=8, forgers=3, rounds=4)
    assert measure_forgery(plan) == measure_forgery(plan)


def test_the_worse_of_both_counts() -> None:
    assert ForgeryFigures(30, 10.0, 1, 5.0).ratio == 3.0
    assert ForgeryFigures(3, 10.0, 20, 5.0).ratio == 4.0
    assert ForgeryFigures(0, 0.0, 0, 0.0).ratio == 0.0
