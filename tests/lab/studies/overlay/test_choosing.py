"""A tracker's graph and rings on the same small set: both deliver, only one is cheap."""

from __future__ import annotations

from linnet.lab.studies.overlay.choosing import RING, TRACKER, ChoosingPlan, measure_choosing
from linnet.lab.studies.overlay.data import Surroundings
from linnet.lab.studies.overlay.living import LivingPlan

PLAN = LivingPlan("drawn", 12, 2, 2, rounds=5, warmup=15)


def test_both_deliver_and_the_tracker_is_cheaper(around: Surroundings) -> None:
    tracker, ring = (measure_choosing(ChoosingPlan(each, PLAN, 0.2), 1, around) for each in (TRACKER, RING))
    assert set(tracker) == set(ring)
    for found in (tracker, ring):
        assert found["hit_ratio"] == 1_000_000
        assert (found["causal_violations"], found["repeated"]) == (0, 0)
        assert found["repaired_rounds"] < 40
    assert tracker["hourly_bytes"] < ring["hourly_bytes"]
