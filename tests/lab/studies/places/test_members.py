"""The bulk membership test: the document's timeline, and the same question in SQL."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from pyspark.sql import SparkSession
from tests.lab.studies.places.conftest import Looked

from linnet.lab.studies.places.members import (
    changes_of,
    every_test,
    known_generations,
    sampled_verdicts,
    verdicts,
)

NYM = bytearray(b"n")
CHANGES = "place INT, nym BINARY, announced_at BIGINT, effective_since BIGINT, told_in BIGINT, joins BOOLEAN"
TESTS = "place INT, nym BINARY, message BIGINT, generation BIGINT, replay BOOLEAN"
JOIN, PART, AGAIN, AGAIN_ALL = (10, 10, 0, True), (20, 0, 0, False), (30, 30, 1, True), (30, 0, 1, True)


def test_e7_the_timeline_of_the_document(spark: SparkSession) -> None:
    timelines = [
        ([JOIN], {(9, 0): "no", (10, 0): "yes", (25, 0): "yes", (25, 1): "unknown"}),
        ([JOIN, PART], {(9, 0): "no", (15, 0): "no", (20, 0): "no", (25, 1): "no"}),
        ([JOIN, PART, AGAIN], {(15, 0): "no", (29, 1): "no", (30, 1): "yes"}),
        ([JOIN, PART, AGAIN_ALL], {(15, 0): "yes", (25, 1): "yes"}),
    ]
    changes = [(place, NYM, *change) for place, (known, _) in enumerate(timelines) for change in known]
    tests = [(place, NYM, *asked, False) for place, (_, told) in enumerate(timelines) for asked in told]
    found = verdicts(spark.createDataFrame(changes, CHANGES), spark.createDataFrame(tests, TESTS)).collect()
    expected = {
        (place, *asked): say for place, (_, told) in enumerate(timelines) for asked, say in told.items()
    }
    assert {(row.place, row.message, row.generation): row.verdict for row in found} == expected


def test_the_notice_of_the_own_removal_may_be_replayed_and_strangers_get_nothing(spark: SparkSession) -> None:
    changes = spark.createDataFrame([(1, NYM, *JOIN), (1, NYM, *PART)], CHANGES)
    tests = [
        (1, NYM, 20, 0, True),
        (1, NYM, 20, 0, False),
        (1, NYM, 20, 1, True),
        (1, bytearray(b"s"), 20, 0, True),
    ]
    found = verdicts(changes, spark.createDataFrame(tests, TESTS)).collect()
    told = {(bytes(row.nym), row.generation, row.replay): row.verdict for row in found}
    assert told == {
        (b"n", 0, True): "yes",
        (b"n", 0, False): "no",
        (b"n", 1, True): "no",
        (b"s", 0, True): "no",
    }


def test_a_removal_that_is_missing_holds_back_all_behind_it(spark: SparkSession) -> None:
    parts = [(1, NYM, at, 0, generation, False) for at, generation in ((5, 0), (6, 1), (9, 3), (7, 1))]
    (row,) = known_generations(spark.createDataFrame(parts, CHANGES)).collect()
    assert (row.place, row.known) == (1, 2)


def test_the_same_as_a_query_of_sqlite_on_random_changes(looked: Looked) -> None:
    """Toth 2013, section 5.3, word by word: the last announced of those that are effective."""
    changes, tests = changes_of(looked.taken).cache(), every_test(looked.taken).where("NOT replay")
    known = {row.place: row.known for row in known_generations(changes).collect()}
    with closing(sqlite3.connect(":memory:")) as base:
        base.execute("CREATE TABLE membership (place, nym, announced_at, effective_since, told_in, joins)")
        rows = [tuple(row) for row in changes.collect()]
        base.executemany("INSERT INTO membership VALUES (?, ?, ?, ?, ?, ?)", rows)
        base.execute("CREATE INDEX by_nym ON membership (place, nym)")
        query = (
            "SELECT joins FROM membership WHERE place = ? AND nym = ? AND effective_since <= ? "
            "ORDER BY announced_at DESC LIMIT 1"
        )
        judged = verdicts(changes, tests).collect()
        assert len(judged) > 5_000
        for row in judged:
            found = base.execute(query, (row.place, row.nym, row.message)).fetchone()
            inside = "yes" if found is not None and found[0] else "no"
            expected = "unknown" if row.generation > known.get(row.place, 0) else inside
            assert row.verdict == expected, row


def test_verdicts_on_some_messages_are_those_of_all_tests(looked: Looked) -> None:
    judged = verdicts(changes_of(looked.taken), every_test(looked.taken)).where("message % 3 = 0")
    some = sampled_verdicts(looked.taken, 3)
    assert some.columns == judged.columns
    assert some.count() == judged.count() > 1_000
    assert some.exceptAll(judged).isEmpty()
