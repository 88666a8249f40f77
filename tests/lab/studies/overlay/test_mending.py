"""Failures, a partition and newcomers, each in a small overlay."""

from __future__ import annotations

import pytest

from linnet.lab.studies.overlay.data import Surroundings
from linnet.lab.studies.overlay.living import LivingPlan
from linnet.lab.studies.overlay.mending import FAILURE, JOIN, PARTITION, MendingPlan, measure_mending

PLAN = LivingPlan("drawn", 14, 2, 2, rounds=5, warmup=15)


@pytest.mark.parametrize("kind", [FAILURE, PARTITION])
def test_what_is_disturbed_comes_to_rest_again(kind: str, around: Surroundings) -> None:
    found = measure_mending(MendingPlan(kind, PLAN, 0.3 if kind == FAILURE else 0.0, apart=5), 1, around)
    assert found["hit_ratio_after_repair"] == 1_000_000
    assert (found["causal_violations"], found["repeated"]) == (0, 0)
    if kind == FAILURE:
        assert found["hit_ratio_at_once"] > 700_000
        assert found["repaired_rounds"] < 40
    else:
        assert found["had_before"] < 1_000_000
        assert found["whole_after_ms"] < 400_000


def test_newcomers_find_neighbours(around: Surroundings) -> None:
    found = measure_mending(MendingPlan(JOIN, PLAN, 0.25), 1, around)
    assert found["pairs"] == found["met"] > 0
    assert all(0 <= found[name] < 400_000 for name in found if name.startswith("join_ms"))
