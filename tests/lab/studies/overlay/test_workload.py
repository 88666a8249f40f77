"""Cases: one for each setting and repeat, with plans that are read back."""

from __future__ import annotations

from collections import Counter

import msgspec
from msgspec.structs import replace
from tests.lab.studies.overlay.conftest import SMALL

from linnet.lab.studies.overlay.attacks import SamplingPlan
from linnet.lab.studies.overlay.data import Surroundings
from linnet.lab.studies.overlay.filters import FilterPlan
from linnet.lab.studies.overlay.living import LivingPlan
from linnet.lab.studies.overlay.workload import (
    DEGREES,
    FILTERS,
    LIVING,
    SAMPLING,
    SCALE,
    origins,
    seed_of,
    stages,
)


def test_all_experiments_have_cases(around: Surroundings) -> None:
    found = stages(SMALL, around)
    assert list(found) == [
        "sampling",
        "filters",
        "rings",
        "living",
        "degrees",
        "mending",
        "choosing",
        "bounds",
    ]
    for name, cases in found.items():
        assert all(case.experiment == name for case in cases)
        assert max(Counter((case.setting, case.repeat) for case in cases).values()) == 1
    plan = msgspec.json.decode(found[SAMPLING][0].plan, type=SamplingPlan)
    assert (plan.nodes, plan.rounds) == (50, 20)
    assert {case.setting for case in found[LIVING]} == {
        "drawn|calm",
        "drawn|liars",
        "drawn|liars and churn",
    }


def test_repeats_and_scale(around: Surroundings) -> None:
    found = stages(replace(SMALL, repeats=2, attack_repeats=3, scale=200), around)
    assert Counter(case.repeat for case in found[SAMPLING])[2] == len(found[SAMPLING]) / 3
    assert len({case.seed for case in found[LIVING]}) == 2
    (case,) = found[SCALE]
    plan = msgspec.json.decode(case.plan, type=LivingPlan)
    assert (plan.origin, plan.topics) == ("drawn", 200)
    real = replace(around, interests={"twitter at scale": ((0,),)})
    (case,) = stages(replace(SMALL, scale=200), real)[SCALE]
    assert msgspec.json.decode(case.plan, type=LivingPlan).origin == "twitter at scale"
    assert seed_of(1, "a", 0) != seed_of(1, "a", 1) != seed_of(2, "a", 1)


def test_real_interests_come_first(around: Surroundings) -> None:
    real = replace(around, interests={"lastfm": ((0,),), "twitter": ((0,),)}, weeks=(((0, 1),),))
    assert origins(real) == ["twitter", "lastfm", "drawn"]
    living = {case.setting for case in stages(SMALL, real)[LIVING]}
    assert {"twitter|calm", "lastfm|calm", "twitter|phones"} <= living
    assert "drawn|phones" not in living


def test_filters_are_compared_for_all_hashes_and_epsilons_of_all_origins(around: Surroundings) -> None:
    real = replace(around, interests={"twitter": ((0,),)})
    cases = stages(SMALL, real)[FILTERS]
    plans = {case.setting: msgspec.json.decode(case.plan, type=FilterPlan) for case in cases}
    assert plans == {
        f"{origin}|{hashes}|{epsilon}": FilterPlan(epsilon, hashes)
        for origin in ("twitter", "drawn")
        for hashes in (1, 4, 7)
        for epsilon in (1, 2, 3, 5, 8, 15)
    }


def test_neighbours_are_counted_in_both_orders_over_rising_subscriptions(around: Surroundings) -> None:
    cases = stages(SMALL, around)[DEGREES]
    plans = {case.setting: msgspec.json.decode(case.plan, type=LivingPlan) for case in cases}
    assert {name: (plan.order, plan.subscriptions, plan.origin) for name, plan in plans.items()} == {
        f"{order}|{each}": (order, each, "drawn") for order in ("id", "hash") for each in (1, 4)
    }
