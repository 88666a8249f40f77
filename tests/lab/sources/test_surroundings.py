"""Latencies, sessions and subscriptions become tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from linnet.lab.errors import LabError
from linnet.lab.sources.availability import DAY_MS
from linnet.lab.sources.choices import Choices
from linnet.lab.sources.names import names_of
from linnet.lab.sources.surroundings import ingest_surrounding, prepare_surrounding
from linnet.lab.stages import Workshop, open_table
from linnet.lab.tables import LATENCIES, QUARANTINE, SESSIONS

NAMES = names_of("salt")
START = 1_402_358_400_000


def test_of_a_pair_that_comes_twice_the_first_is_kept(spark: SparkSession, tmp_path: Path) -> None:
    for name, text in (("a.csv", "a,b,1\nb,a,2\na,b,3\n"), ("b.csv", "b,a,4\nb,b,x\nb,b,5\n")):
        (tmp_path / name).write_text("from,to,v\n" + text)
    files = [tmp_path / "b.csv", tmp_path / "a.csv"]
    source = prepare_surrounding("latency", files, Choices(values="oneway"))
    counts = ingest_surrounding(Workshop(spark, tmp_path / "out"), source, NAMES)
    rows = open_table(spark, tmp_path / "out" / "latencies", LATENCIES).frame.collect()
    assert sorted(tuple(row) for row in rows) == [("a", "b", 1000), ("b", "a", 2000), ("b", "b", 5000)]
    assert (counts.rows, counts.distinct) == (3, {"origins": 2, "targets": 2})
    assert counts.quarantined == {
        "the same pair came before": 2,
        "its value is no number of milliseconds from 0 to 60000": 1,
    }
    bad = open_table(spark, tmp_path / "out" / "quarantine_latencies", QUARANTINE).frame.collect()
    assert sorted((row.file, row.line) for row in bad) == [("a.csv", 4), ("b.csv", 2), ("b.csv", 3)]


def test_a_device_has_the_sessions_of_one_line_only(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "s.txt"
    path.write_text(f"7 1 {START} 2 5 5 5 {DAY_MS}\n7 1 {START} 2 9 2 5 {DAY_MS}\n8 0 {START} 2 {DAY_MS}\n")
    source = prepare_surrounding("availability", [path], Choices())
    counts = ingest_surrounding(Workshop(spark, tmp_path / "out"), source, NAMES)
    length = DAY_MS + 15
    rows = open_table(spark, tmp_path / "out" / "sessions", SESSIONS).frame.collect()
    assert sorted((row.start_ms, row.end_ms, row.week_ms) for row in rows) == [
        (0, 5, length),
        (10, 15, length),
    ]
    assert counts.quarantined == {
        "the same device and week came before": 2,
        "left out: a device that was never online": 1,
    }


def test_a_source_without_a_good_row_is_an_error_that_says_why(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "s.txt"
    path.write_text(f"8 0 {START} 2 {DAY_MS}\n")
    source = prepare_surrounding("availability", [path], Choices())
    with pytest.raises(LabError, match=r"no row could be used: .*never online \(1\)"):
        ingest_surrounding(Workshop(spark, tmp_path / "out"), source, NAMES)
