"""Figures and checks, and that each check can fail."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.lab.studies.places.views import COMPARED, GOOD, SCALE

from linnet.lab.studies.places.figures import checks, figures
from linnet.lab.studies.places.findings import Finding
from linnet.lab.studies.places.view import View


def failing(view: View) -> list[str]:
    return [check.id for check in checks(view) if not check.ok]


def test_what_is_right_passes() -> None:
    assert failing(GOOD) == []
    assert failing(replace(GOOD, scale=None)) == []


@pytest.mark.parametrize(
    ("changes", "broken"),
    [
        ({"missing": 19}, "large.counted"),
        ({"wrong_hashes": 1}, "large.hashes"),
        ({"hashes": 0}, "large.hashes"),
        ({"generation_faults": 1}, "large.generations"),
        ({"sampled_wrong": 1}, "large.sample"),
        ({"sampled": 0}, "large.sample"),
    ],
)
def test_what_is_wrong_with_a_large_log_is_named(changes: dict[str, int], broken: str) -> None:
    assert failing(replace(GOOD, scale=replace(SCALE, **changes))) == [broken]


def test_a_difference_silence_a_miss_and_a_false_alarm_are_named() -> None:
    jobs = {**COMPARED.jobs, "gaps": (10, 1, "place 1, fragment 2: 3, not 4"), "state": (0, 0, None)}
    assert failing(replace(GOOD, compared=replace(COMPARED, jobs=jobs))) == ["equal.gaps", "equal.state"]
    found = (Finding("hash", 3, 2, 1, 0), Finding("generation", 3, 3, 3, 1))
    missed = replace(GOOD, compared=replace(COMPARED, findings=found))
    assert failing(missed) == ["found.hash", "found.generation"]


def test_rates_are_of_the_whole_log() -> None:
    told = {each.id: each.measured for each in figures(GOOD)}
    assert told["large.intervals"] == 500
    assert told["large.state-at-id"] == 125
    assert told["answers.members"] == 10
