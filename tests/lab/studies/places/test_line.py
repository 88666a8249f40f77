"""Each fragment once, gaps, generations."""

from __future__ import annotations

from pyspark.sql import SparkSession
from tests.lab.studies.places.lines import taken_frame

from linnet.lab.studies.places import line
from linnet.lab.studies.places.columns import FRAGMENTS


def test_the_first_that_came_counts_and_another_under_its_number_is_told(spark: SparkSession) -> None:
    def row(arrival: int, fragment: int, event: bytes, fault: str | None = None) -> tuple[object, ...]:
        return (1, arrival, fragment, 1, 0, 0, 3, None, None, None, event, event, fault)

    rows = [row(3, 0, b"b"), row(1, 0, b"a"), row(2, 0, b"a"), row(4, 1, b"c"), row(0, 2, b"d", "bad")]
    found = line.taken(spark.createDataFrame(rows, FRAGMENTS.columns)).collect()
    assert sorted((row.fragment, bytes(row.body), row.copies, row.equivocated) for row in found) == [
        (0, b"a", 3, True),
        (1, b"c", 1, False),
    ]


def test_gaps_are_ranges_below_the_highest(spark: SparkSession) -> None:
    rows: list[dict[str, object]] = [
        {"fragment": 2, "message": 3},
        {"fragment": 3, "message": 3},
        {"fragment": 7, "message": 9},
        {"fragment": 0, "message": 1, "place": 2},
    ]
    taken = taken_frame(spark, rows).cache()
    assert sorted(map(tuple, line.fragment_gaps(taken).collect())) == [(1, 0, 1), (1, 4, 6)]
    assert sorted(map(tuple, line.message_gaps(taken).collect())) == [(1, 1, 2), (1, 4, 8)]


def test_a_generation_grows_behind_a_removal_or_where_one_may_be_missing(spark: SparkSession) -> None:
    part: dict[str, object] = {"nym": b"n", "joins": False, "since": 0}
    join: dict[str, object] = {"nym": b"n", "joins": True, "since": 1}
    rows: list[dict[str, object]] = [
        {"fragment": 0},
        {"fragment": 1, **join},
        {"fragment": 2, **part},
        {"fragment": 3, "generation": 1},
        {"fragment": 4, "generation": 2},
        {"fragment": 5, "generation": 1},
        {"fragment": 8, "generation": 3},
        {"fragment": 10, "generation": 5},
    ]
    found = line.generation_faults(taken_frame(spark, rows)).collect()
    assert sorted((row.fragment, row.fault) for row in found) == [
        (4, line.UNEXPLAINED),
        (5, line.FALLS),
        (10, line.UNEXPLAINED),
    ]
