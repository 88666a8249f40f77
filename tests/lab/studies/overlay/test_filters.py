"""What filters find and tell: more with a larger epsilon, most with one hash and our own filter exact."""

from __future__ import annotations

import pytest

from linnet.lab.studies.overlay.filters import PPM, FilterPlan, area, measure_filters
from linnet.sim.overlay.scenario import drawn_interests

INTERESTS = drawn_interests(1, 80, 300, 20)


def test_the_curve_rises_with_epsilon_and_one_hash_is_best() -> None:
    low, middle, high = (
        measure_filters(FilterPlan(epsilon, 1), INTERESTS, 1) for epsilon in (0.5, 3.0, 20.0)
    )
    assert low["utility"] < middle["utility"] < high["utility"]
    assert low["attack"] < middle["attack"] < high["attack"]
    assert high["utility"] > 0.9 * PPM
    assert low["attack"] < 0.72 * PPM
    assert middle["utility"] > middle["utility_two_sided"]
    four = measure_filters(FilterPlan(3.0, 4), INTERESTS, 1)
    assert four["utility"] < middle["utility"]
    clear = measure_filters(FilterPlan(20.0, 4), INTERESTS, 1)
    assert clear["utility"] > 0.97 * PPM
    assert clear["attack"] > high["attack"], "almost without noise, more bits tell more"
    assert middle == measure_filters(FilterPlan(3.0, 1), INTERESTS, 1)
    assert 0 < middle["likeness"] <= PPM


def test_the_area_is_the_chance_of_a_higher_score() -> None:
    assert area([2.0, 3.0], [1.0]) == 1.0
    assert area([1.0], [1.0]) == 0.5
    assert area([1.0, 3.0], [2.0, 2.0]) == 0.5
    assert area([], [1.0]) == 0.5
    assert area([0.0, 2.0, 2.0], [1.0, 2.0]) == pytest.approx((0 + 1.5 + 1.5) / 6)
