"""What is said: a difference does not hold, and what was not run is labelled."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from linnet.lab.matching.parameters import MatchParameters
from linnet.lab.matching.told import EXTRAPOLATED, Beside, Found, matcher_seconds, plain_seconds, report_of
from linnet.lab.report.parts import StageCost

BESIDE = Beside(size=100, small=50, pairs=30, wrong=0)
FOUND = Found(
    records=10,
    missing=("stocks.csv",),
    unread={"bitcoin.csv": 2},
    pairs=5000,
    pieces=7,
    placed=1200,
    largest=200,
    event_copies=3.5,
    sampled=10,
    sampled_pairs=50,
    wrong=0,
    beside=BESIDE,
)
SECONDS = {
    "homes": 1.0,
    "placed": 0.5,
    "matches": 2.5,
    "few-homes": 0.1,
    "few-placed": 0.1,
    "few-matches": 0.2,
    "plain": 3.0,
    "half-plain": 1.5,
}
COSTS = [
    StageCost(name=name, rows=1, seconds=each, peak_bytes=1, reused=False) for name, each in SECONDS.items()
]
PARAMETERS = MatchParameters(events=1000, subscriptions=1000, capacity=100)


def failing(found: Found) -> list[str]:
    return [check.id for check in report_of(PARAMETERS, found, COSTS).failures()]


def test_a_plain_join_grows_with_the_pairs() -> None:
    assert matcher_seconds(SECONDS) == 4.0
    assert matcher_seconds(SECONDS, "few-") == pytest.approx(0.4)
    assert plain_seconds(BESIDE, SECONDS, 100 * 100) == 3.0
    assert plain_seconds(BESIDE, SECONDS, 1000 * 1000) == pytest.approx(3.0 + 990_000 * 1.5 / 7500)


def test_what_was_not_run_is_labelled() -> None:
    report = report_of(PARAMETERS, FOUND, COSTS)
    assert report.ok
    figures = {figure.id: figure for figure in report.figures}
    assert EXTRAPOLATED in figures["plain.extrapolated"].title
    assert figures["plain.extrapolated"].measured == 201
    assert figures["matcher.rate"].measured == 250
    assert report.quarantined == {"no such value in bitcoin.csv": 2}
    [section] = report.sections
    assert "stocks.csv" in section.text[1]
    assert [row[-1] for row in section.grids[0].rows] == ["run", "run", "run", EXTRAPOLATED]
    assert len(section.plots) == 1


def test_without_a_plain_join_nothing_is_said_of_one() -> None:
    report = report_of(PARAMETERS, replace(FOUND, beside=None), COSTS)
    assert not any(figure.id.startswith("plain") for figure in report.figures)
    assert report.sections[0].plots == ()


def test_differences_do_not_hold() -> None:
    assert failing(replace(FOUND, wrong=1)) == ["equal.index"]
    assert failing(replace(FOUND, sampled_pairs=0)) == ["equal.index"]
    assert failing(replace(FOUND, beside=replace(BESIDE, wrong=2))) == ["equal.plain"]
    assert failing(replace(FOUND, beside=replace(BESIDE, pairs=0))) == ["equal.plain"]
    assert failing(replace(FOUND, largest=1000)) == ["pieces.parted"]
