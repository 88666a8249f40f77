"""An overlay in whole numbers, and where its interests and its phones come from."""

from __future__ import annotations

from msgspec.structs import replace

from linnet.lab.studies.overlay.data import Surroundings
from linnet.lab.studies.overlay.living import LivingPlan, attended, interests_of, measure_living

PLAN = LivingPlan("drawn", 12, 3, 2, rounds=5, warmup=20, repair=2, events=1)


def test_one_overlay_in_whole_numbers(around: Surroundings) -> None:
    found = measure_living(PLAN, 1, around)
    assert (found["hit_ratio"], found["connected_topics"], found["noise"]) == (1_000_000, 1_000_000, 0)
    assert found["events"] == 3
    assert found["mean_degree"] > 2000
    assert all(isinstance(value, int) for value in found.values())


def test_real_interests_and_phones() -> None:
    real = Surroundings(
        {"twitter": ((0,), (0, 1), (1,))},
        {},
        (((0, 50_000_000),), ((43_000_000, 44_000_000), (60_000_000, 61_000_000)), ()),
        None,  # type: ignore[arg-type]
        "",
        (),
    )
    plan = replace(PLAN, origin="twitter", nodes=2)
    assert interests_of(plan, 1, real) == ((0,), (0, 1))
    assert attended(real, plan) == [[(0.0, 6800.0)], [(0.0, 800.0), (16_800.0, 17_800.0)]]
    assert len(interests_of(PLAN, 1, real)) == 12
