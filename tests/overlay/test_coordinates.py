from __future__ import annotations

from itertools import combinations
from math import dist
from random import Random
from statistics import median

import pytest

from linnet.overlay.coordinates import SAMPLES, Coordinates


def test_unmeasured_pairs_are_estimated_from_few_samples() -> None:
    rng = Random(1)
    nodes = 60
    places = [(rng.random(), rng.random()) for _ in range(nodes)]
    heights = [rng.uniform(0.001, 0.01) for _ in range(nodes)]

    def rtt(a: int, b: int) -> float:
        return 0.2 * dist(places[a], places[b]) + heights[a] + heights[b]

    coordinates: Coordinates[int] = Coordinates(Random(2))
    for a in range(nodes):
        for b in rng.sample([other for other in range(nodes) if other != a], 6):
            coordinates.observe(a, b, rtt(a, b))
    for _ in range(60):
        coordinates.relax(range(nodes))
    errors = []
    for a, b in combinations(range(nodes), 2):
        estimate = coordinates.estimate(a, b)
        assert estimate is not None
        errors.append(abs(estimate - rtt(a, b)) / rtt(a, b))
    assert median(errors) < 0.15


def test_what_was_measured_is_told_as_it_is() -> None:
    coordinates: Coordinates[str] = Coordinates(Random(1))
    assert coordinates.estimate("a", "b") is None
    coordinates.observe("a", "b", 0.08)
    assert coordinates.estimate("a", "b") == coordinates.estimate("b", "a") == 0.08
    coordinates.observe("a", "b", 0.05)
    assert coordinates.estimate("a", "b") == 0.05


def test_only_the_newest_samples_are_kept() -> None:
    coordinates: Coordinates[int] = Coordinates(Random(1))
    for other in range(1, SAMPLES + 2):
        coordinates.observe(0, other, 9.0)
    assert coordinates.estimate(0, 2) == 9.0
    assert coordinates.estimate(0, 1) != 9.0


def test_a_node_that_is_gone_is_forgotten() -> None:
    coordinates: Coordinates[str] = Coordinates(Random(1))
    coordinates.observe("a", "b", 0.08)
    coordinates.observe("b", "c", 0.01)
    coordinates.forget("b")
    assert coordinates.estimate("b", "c") is None
    coordinates.relax(["a", "b", "c"])
    assert coordinates.estimate("a", "c") is not None
    assert coordinates.estimate("b", "c") is None


@pytest.mark.parametrize("rtt", [0.0, 1e-9, 1e6])
def test_foolish_times_do_no_harm(rtt: float) -> None:
    coordinates: Coordinates[str] = Coordinates(Random(1))
    for _ in range(100):
        coordinates.observe("a", "b", rtt)
        coordinates.observe("b", "a", rtt)
    coordinates.observe("a", "c", 0.05)
    estimate = coordinates.estimate("b", "c")
    assert estimate is not None
    assert 0 <= estimate < 1e7
