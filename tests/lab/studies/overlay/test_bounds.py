"""Attacks with bounds: each is a case, numbers come back as they were, and a broken bound fails a check."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.lab.studies.overlay.conftest import SMALL

from linnet.lab.errors import LabError
from linnet.lab.studies.overlay.bounds import (
    BOUNDS,
    BoundsPlan,
    attack_rows,
    bounds_plans,
    checks,
    figures,
    grid,
    measure_bounds,
)
from linnet.lab.studies.overlay.metrics import Outcomes, gather
from linnet.sim.attacks import overlay as overlay_attacks
from linnet.sim.attacks.overlay import AttackSize, intersection_probing

PLAN = BoundsPlan("intersection_probing", overlay_attacks.SMALL)


def outcomes_of(plan: BoundsPlan, add: int = 0) -> Outcomes:
    measured = measure_bounds(plan)
    return gather(
        (BOUNDS, plan.attack, 0, measure, bin, count + (add if bin == 0 else 0))
        for measure, counts in measured.items()
        for bin, count in counts.items()
    )


def test_all_attacks_are_planned_in_networks_as_large_as_the_others() -> None:
    small, large = bounds_plans(SMALL), bounds_plans(replace(SMALL, attack_nodes=300, seed=7))
    assert [plan.attack for plan in small] == [attack.__name__ for attack in overlay_attacks.ATTACKS]
    assert small[0].size.nodes == overlay_attacks.SMALL.nodes
    assert large[0].size == replace(AttackSize(), seed=7)


def test_numbers_come_back_as_they_were() -> None:
    assert list(attack_rows(outcomes_of(PLAN))) == list(intersection_probing(overlay_attacks.SMALL))


def test_a_bound_that_is_broken_fails_its_check() -> None:
    (kept,), (broken,) = checks(outcomes_of(PLAN)), checks(outcomes_of(PLAN, add=1_000_000))
    assert (kept.id, kept.ok, broken.ok) == ("bounds.intersection_probing", True, False)
    assert "7681" in broken.detail


def test_every_number_is_in_the_report() -> None:
    outcomes = outcomes_of(PLAN)
    assert [figure.measured for figure in figures(outcomes)] == [7680, 1536]
    assert [row[3] for row in grid(outcomes).rows] == ["at most 7680", "at most 1536"]


def test_an_attack_that_is_not_known_is_said_so() -> None:
    with pytest.raises(LabError, match="no attack is called"):
        measure_bounds(BoundsPlan("magic", overlay_attacks.SMALL))
