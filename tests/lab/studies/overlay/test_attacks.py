"""Attacks in small: plain Cyclon gives in, the shipped sampler does not."""

from __future__ import annotations

import pytest

from linnet.lab.errors import LabError
from linnet.lab.studies.overlay.attacks import (
    BRAHMS,
    CYCLON,
    PUBLISHED,
    TRUSTING,
    SamplingPlan,
    measure_attack,
    way_of,
)


def _end(way: str, nodes: int, rounds: int) -> float:
    found = measure_attack(SamplingPlan(way, "hub", 0.1, nodes, rounds), 1)
    return found["lying"][rounds] / found["places"][rounds]


def test_who_gives_in_and_who_does_not() -> None:
    assert _end(CYCLON, 400, 40) > 0.9
    assert _end(TRUSTING, 100, 40) < 0.2
    assert 0.0 < _end(PUBLISHED, 100, 20) < 1.0
    assert 0.0 < _end(BRAHMS, 100, 10) < 1.0


def test_what_is_measured() -> None:
    found = measure_attack(SamplingPlan(TRUSTING, "eclipse", 0.1, 60, 20), 1)
    assert list(found["places"]) == [1, 10, 20]
    assert set(found) >= {"lying", "victim_lying", "victim_places", "isolated", "unknown", "honest"}
    assert found["honest"] == {0: 54}
    assert found == measure_attack(SamplingPlan(TRUSTING, "eclipse", 0.1, 60, 20), 1)
    with pytest.raises(LabError, match="nobody"):
        way_of(SamplingPlan("nobody", "hub", 0.1, 60, 20))
