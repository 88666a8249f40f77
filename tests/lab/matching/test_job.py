"""Matching in small: equal to the index and to a plain join, in pieces, and resumed."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from linnet.lab.matching.job import match
from linnet.lab.matching.parameters import MatchParameters
from linnet.lab.stages import Workshop

SMALL = MatchParameters(events=600, subscriptions=1_500, plain=600, sample=300, capacity=100)


def test_matches_are_those_of_the_index_and_of_a_plain_join(spark: SparkSession, tmp_path: Path) -> None:
    said: list[str] = []
    report = match(Workshop(spark, tmp_path, said.append), SMALL)
    assert report.ok, report.failures()
    figures = {figure.id: figure.measured for figure in report.figures}
    assert isinstance(figures["pairs"], int)
    assert figures["pairs"] > 0
    assert isinstance(figures["pieces"], int)
    assert figures["pieces"] >= 10
    checks = {check.id: check.detail for check in report.checks}
    assert set(checks) == {"equal.index", "equal.plain", "pieces.parted"}
    assert checks["equal.index"] == "300 events, 40 pairs, 0 differ"
    assert checks["equal.plain"] == "39 pairs, 0 differ"
    assert "extrapolated, not run" in next(
        each.title for each in report.figures if each.id == "plain.extrapolated"
    )
    assert said[-1] == "report"
    said.clear()
    again = match(Workshop(spark, tmp_path, said.append), SMALL)
    assert said == ["report"]
    assert [each.measured for each in again.figures] == [each.measured for each in report.figures]
