"""Sums and histograms of runs, against plain Python on drawn counts."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from pyspark.sql import DataFrame, SparkSession

from linnet.lab.stages import schema_of
from linnet.lab.studies.streams.metrics import (
    HISTOGRAMS,
    Outcomes,
    long_paths,
    mean_bin,
    pooled,
    quantile,
    read_outcomes,
    redundancy,
    shares,
    totals,
)
from linnet.lab.tables import STREAM_COUNTS

Row = tuple[str, int, int, int, str, int, int]
KEY = ("counter", 32, 4)


def drawn(seed: int) -> list[Row]:
    luck = Random(seed)
    found: dict[tuple[str, int, int, int, str, int], int] = {}
    for mode in ("counter", "naive"):
        for size in (8, 16):
            for repeat in range(3):
                for measure in ("delay", "receipts", *HISTOGRAMS):
                    bins = [luck.randrange(5) for _ in range(4)] if measure in HISTOGRAMS else [0]
                    for bin in bins:
                        found[mode, size, 4, repeat, measure, bin] = luck.randrange(1, 1 << 40)
    return [(*key, count) for key, count in found.items()]


def frame(spark: SparkSession, rows: list[Row]) -> DataFrame:
    return spark.createDataFrame(rows, schema_of(STREAM_COUNTS)).repartition(3)


@pytest.mark.parametrize("seed", [1, 2])
def test_transforms_add_up_as_plain_python_does(spark: SparkSession, seed: int) -> None:
    rows = drawn(seed)
    made = frame(spark, rows)
    sums = {tuple(row) for row in totals(made).collect()}
    assert sums == {(*row[:5], row[6]) for row in rows if row[4] not in HISTOGRAMS}
    expected: Counter[tuple[str, int, int, str, int]] = Counter()
    for mode, size, degree, _, measure, bin, count in rows:
        if measure in HISTOGRAMS:
            expected[mode, size, degree, measure, bin] += count
    found = [tuple(row) for row in pooled(made).collect()]
    assert {row[:5]: row[5] for row in found} == expected
    assert len(found) == len(expected)


def test_what_is_gathered_has_every_run_in_its_order(spark: SparkSession) -> None:
    rows = drawn(3)
    outcomes = read_outcomes(frame(spark, rows))
    assert list(outcomes.totals) == [(mode, size, 4) for mode in ("counter", "naive") for size in (8, 16)]
    for key, runs in outcomes.totals.items():
        assert runs == [
            {row[4]: row[6] for row in rows if row[:4] == (*key, repeat) and row[4] not in HISTOGRAMS}
            for repeat in range(3)
        ]
    assert list(outcomes.pool(("naive", 16, 4), "hops")) == sorted(outcomes.pool(("naive", 16, 4), "hops"))
    assert outcomes.pool(("naive", 64, 4), "hops") == {}
    assert outcomes.has("naive", 16, 4)
    assert not outcomes.has("naive", 16, 6)


def test_means_are_per_run_and_ratios_over_all() -> None:
    runs = [{"delay": 30_000, "receipts": 3}, {"delay": 40_000, "receipts": 1}]
    outcomes = Outcomes({KEY: runs}, {})
    delay = outcomes.delay(KEY)
    assert (delay.lowest, delay.mean, delay.highest) == (10.0, 25.0, 40.0)
    assert outcomes.ratio(KEY, "delay", "receipts", 1e-3) == pytest.approx(17.5)


def test_duplicates_at_the_publisher_do_not_count() -> None:
    outcomes = Outcomes({KEY: [{"duplicates": 70, "returned": 8, "expected": 31}]}, {})
    assert redundancy(outcomes, KEY).mean == 2.0


def test_long_paths_are_weighed_by_receipts() -> None:
    pools = {
        (*KEY, "hops"): {24: 100, 25: 3, 30: 1},
        (*KEY, "hop_delay"): {24: 9_000_000, 25: 600_000, 30: 400_000},
    }
    assert long_paths(Outcomes({}, pools), KEY) == pytest.approx(250.0)
    assert long_paths(Outcomes({}, {}), KEY) is None


@pytest.mark.parametrize("seed", range(5))
def test_quantiles_and_shares_are_those_of_the_sorted_list(seed: int) -> None:
    luck = Random(seed)
    values = sorted(luck.randrange(30) for _ in range(luck.randrange(1, 200)))
    bins = Counter(values)
    for share in (0.01, 0.5, 0.99, 1.0):
        wanted = next(value for value in values if sum(v <= value for v in values) >= share * len(values))
        assert quantile(bins, share) == wanted
    assert shares(bins) == (
        sorted(bins),
        [sum(v <= value for v in values) / len(values) for value in sorted(bins)],
    )
    assert mean_bin(bins) == pytest.approx(sum(values) / len(values))
    assert quantile({}, 0.5) is None
