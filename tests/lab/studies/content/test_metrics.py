"""From points to percentages, distributions and sums over stages, beside plain Python."""

from __future__ import annotations

from random import Random
from statistics import fmean

import pytest
from pyspark.sql import DataFrame, SparkSession

from linnet.lab.studies.content.columns import POINTS
from linnet.lab.studies.content.metrics import correctness_of, cumulated_of, summary_of
from linnet.lab.studies.content.run import DUPLICATED, EXPECTED, LATENCY, MEMORY, MISSING, PROCESSOR, UNASKED

Point = tuple[str, str, int, int, int, int, str, int, int]


def points(spark: SparkSession, rows: list[Point]) -> DataFrame:
    return spark.createDataFrame(rows, POINTS.columns)


def counted(variant: str, repeat: int, **counts: int) -> list[Point]:
    return [("normal", variant, 60, 2, 0, repeat, metric, value, 1) for metric, value in counts.items()]


def test_percentages_come_from_counts(spark: SparkSession) -> None:
    """The published 19 of 112, which its table rounds up."""
    rows = counted("one", 0, **{EXPECTED: 112, MISSING: 0, DUPLICATED: 19, UNASKED: 0})
    rows += counted("two", 0, **{EXPECTED: 100, MISSING: 25, DUPLICATED: 1, UNASKED: 2})
    rows += counted("two", 1, **{EXPECTED: 50, MISSING: 0, DUPLICATED: 2, UNASKED: 0})
    rows += counted("none", 0, **{EXPECTED: 0, MISSING: 0, DUPLICATED: 0, UNASKED: 0})
    found = {
        row.variant: (row.expected, row.missing, row.duplicated, row.unasked, *row[-2:])
        for row in correctness_of(points(spark, rows)).collect()
    }
    assert found == {
        "one": (112, 0, 19, 0, 16.96, 100.0),
        "two": (150, 25, 3, 2, 2.0, 83.33),
        "none": (0, 0, 0, 0, None, None),
    }


def test_deltas_below_zero_are_dropped_and_counted(spark: SparkSession) -> None:
    deltas = {0: 5, 1: -7, 2: 9}
    rows: list[Point] = [
        ("fault", "v", 60, 0, 0, repeat, MEMORY, value, 1) for repeat, value in deltas.items()
    ]
    rows.append(("fault", "w", 60, 0, 0, 0, MEMORY, -1, 1))
    found = {row.variant: row for row in summary_of(points(spark, rows)).collect()}
    kept = found["v"]
    assert (kept.points, kept.dropped, kept["mean"], kept.least, kept.most) == (2, 1, 7.0, 5, 9)
    none = found["w"]
    assert (none.points, none.dropped, none["mean"], none.half) == (0, 1, None, None)


def test_distributions_are_those_of_the_single_points(spark: SparkSession) -> None:
    luck = Random(3)
    drawn = {repeat: [luck.randrange(50) for _ in range(37)] for repeat in range(3)}
    rows: list[Point] = [
        ("normal", "v", 60, 0, 0, repeat, LATENCY, value, values.count(value))
        for repeat, values in drawn.items()
        for value in sorted(set(values))
    ]
    [found] = summary_of(points(spark, rows)).collect()
    every = sorted(value for values in drawn.values() for value in values)
    assert found.points == len(every)
    assert found["mean"] == pytest.approx(fmean(every))
    quarters = [every[-(-len(every) * part // 4) - 1] for part in (1, 2, 3)]
    assert [found.quarter, found.half, found.three_quarters] == quarters
    assert (found.least, found.most) == (every[0], every[-1])


def test_costs_are_summed_over_stages(spark: SparkSession) -> None:
    rows: list[Point] = [
        ("replication", "v", 75, f, stage, repeat, PROCESSOR, f * 10 + stage + repeat, 1)
        for f in (1, 2)
        for stage in (1, 2, 3)
        for repeat in (0, 2)
    ]
    rows.append(("normal", "v", 75, 1, 0, 0, PROCESSOR, 99, 1))
    cumulated = cumulated_of(summary_of(points(spark, rows)))
    found = {(row.f, row.stage): (row["mean"], row.cumulated) for row in cumulated.collect()}
    assert found == {
        (1, 1): (12.0, 12.0),
        (1, 2): (13.0, 25.0),
        (1, 3): (14.0, 39.0),
        (2, 1): (22.0, 22.0),
        (2, 2): (23.0, 45.0),
        (2, 3): (24.0, 69.0),
    }
