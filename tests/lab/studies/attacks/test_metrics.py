"""From runs to one row for each attack, beside numbers worked out by hand."""

from __future__ import annotations

from statistics import mean, stdev

import pytest
from msgspec.structs import fields, replace
from pyspark.sql import SparkSession

from linnet.lab.studies.attacks.metrics import Outcome, summary_of
from linnet.lab.studies.attacks.run import RUNS

Run = tuple[str, str, str, int, int, int, int, int, int, int | None, int, int, int]


def run(attack: str, repeat: int, delivered: int, told: int | None = None, worst: int = 5) -> Run:
    return ("streams", attack, "", 500_000, repeat, 100, delivered, 100, worst, told, 1000, 3000, repeat)


def outcomes(spark: SparkSession, rows: list[Run]) -> dict[str, Outcome]:
    frame = summary_of(spark.createDataFrame(rows, RUNS.columns))
    names = [field.name for field in fields(Outcome)]
    return {row["attack"]: Outcome(*(row[name] for name in names)) for row in frame.collect()}


def test_runs_of_one_attack_are_one_row(spark: SparkSession) -> None:
    shares = [40, 70, 100]
    rows = [run("a", number, share, worst=number) for number, share in enumerate(shares)]
    found = outcomes(spark, [*rows, run("b", 0, 100, told=7)])
    first = found["a"]
    assert (first.runs, first.least, first.worst_us, first.without) == (3, 0.4, 2, 1.0)
    assert first.mean == pytest.approx(mean(shares) / 100)
    assert first.deviation == pytest.approx(stdev(shares) / 100)
    assert (first.attacker_bytes, first.honest_bytes, first.blamed) == (1000.0, 3000.0, 3)
    assert (found["b"].runs, found["b"].mean, found["b"].deviation) == (1, 1.0, 0.0)


def test_a_loss_that_nobody_noticed_is_counted(spark: SparkSession) -> None:
    rows = [
        run("a", 0, 90),
        run("a", 1, 90, told=4_000_000),
        run("a", 2, 100),
        run("a", 3, 80, told=8_000_000),
    ]
    found = outcomes(spark, rows)["a"]
    assert (found.noticed, found.unnoticed_losses) == (2, 1)
    assert (found.told_us, found.told_most_us) == (6_000_000.0, 8_000_000)


def test_the_interval_is_students() -> None:
    """For three runs the factor of 95 % is 4.303 (any table of the distribution)."""
    row = Outcome("w", "a", "", 1, 3, 0.5, 0.1, 0.4, 1.0, 0, 0, None, None, 0, 0.0, 0.0, 0)
    low, high = row.interval
    assert low == pytest.approx(0.5 - 4.303 * 0.1 / 3**0.5, abs=1e-4)
    assert high == pytest.approx(0.5 + 4.303 * 0.1 / 3**0.5, abs=1e-4)
    assert replace(row, runs=1).interval == (0.0, 1.0)
    assert replace(row, mean=1.0).interval[1] == 1.0
    assert replace(row, deviation=0.0).interval == (0.5, 0.5)
