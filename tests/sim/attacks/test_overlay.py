"""Every attack has a number, and keeps its bound: in small networks here, in larger ones for the report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from linnet.core.reasons import Reason
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.sim.attacks.forged_filters import Forgery, ForgeryFigures, ForgeryPlan, measure_forgery
from linnet.sim.attacks.overlay import (
    ATTACKS,
    SMALL,
    AttackRow,
    AttackSize,
    attack_rows,
    flood_of_many,
    flood_of_one,
    guesses,
    intersection_probing,
)

NAMES = [
    "eclipse of one victim",
    "poisoned ring",
    "intersection probing",
    "filter forgery",
    "withheld events",
    "flood",
]


@pytest.mark.parametrize(("attack", "name"), list(zip(ATTACKS, NAMES, strict=True)))
def test_every_attack_keeps_its_bounds(
    attack: Callable[[AttackSize], Iterator[AttackRow]], name: str
) -> None:
    rows = list(attack(SMALL))
    assert [row for row in rows if not row.holds] == []
    assert {row.attack for row in rows} == {name}
    assert len({row.measure for row in rows}) == len(rows)


def test_all_guesses_that_are_allowed_are_answered_and_no_more() -> None:
    """So the bound is what is measured: nothing else holds probers back."""
    together, alone = intersection_probing(SMALL)
    assert together.value == together.bound == guesses(TrackerlessConfig()) == 7680
    assert alone.value == alone.bound == 1536


def test_a_bound_is_a_most_or_a_least() -> None:
    assert AttackRow("a", "m", 1.0, 1.0, True).holds
    assert not AttackRow("a", "m", 1.1, 1.0, True).holds
    assert AttackRow("a", "m", 1.0, 1.0, False).holds
    assert not AttackRow("a", "m", 0.9, 1.0, False).holds


@pytest.mark.skipif(not os.environ.get("LINNET_SOAK"), reason="a heavy count; `make soak` runs it")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_larger_networks_keep_the_bounds_too(seed: int) -> None:
    assert [row for row in attack_rows(AttackSize(seed=seed)) if not row.holds] == []


def test_one_peer_is_cut_off_after_ten_seconds_worth_of_messages() -> None:
    flood = flood_of_one()
    assert (flood.taken, flood.reason) == (5000, Reason.FLOODING)
    assert flood.records <= flood.taken + 2


def test_less_than_that_is_no_flood() -> None:
    assert flood_of_one(messages=4000).reason is None


def test_a_crowd_fills_tables_up_to_their_bounds_and_every_refusal_is_named() -> None:
    flood = flood_of_many(2200)
    assert flood.acquaintances == 2048
    assert flood.sample <= 20
    assert flood.walkers == 2048
    assert flood.neighbors == 16 + 6, "as many as may want us, and those whom we want"
    assert flood.refused > 2200
    assert flood.unnamed == 0


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
