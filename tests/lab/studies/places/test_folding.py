"""Which messages change state, and what it was when."""

from __future__ import annotations

from pyspark.sql import SparkSession
from tests.lab.studies.places.lines import Modifiers, parsed_frame

from linnet.lab.studies.places import folding
from linnet.places.channel.state import State


def test_e6_what_rests_on_something_missing_waits_until_state_begins_anew(spark: SparkSession) -> None:
    nothing: Modifiers = []
    lost_five = [(at, delta, nothing, None) for at, delta in ((2, 0), (6, 1), (10, 4), (12, 0), (13, 1))]
    rows = folding.steps_of(parsed_frame(spark, lost_five)).collect()
    assert [(row.message, row.applied) for row in sorted(rows)] == [
        (2, True), (6, False), (10, False), (12, True), (13, True),
    ]  # fmt: skip


def test_values_hold_from_their_message_up_to_the_next(spark: SparkSession) -> None:
    steps = folding.steps_of(
        parsed_frame(
            spark,
            [
                (1, 0, [("=", "_a", b"1"), ("=", "_a", b"2"), (":", "_t", b"9")], None),
                (2, None, [], None),
                (3, 2, [("=", "_b", b"x"), ("+", "_amount", b"5")], None),
                (4, 1, [("=", "_a", b""), ("-", "_amount", b"7"), ("+", "_a_c", b"no")], None),
                (6, 0, [("+", "_amount", b"1")], None),
            ],
        )
    )
    found = [
        (row.name, row.since, row.until, bytes(row.value)) for row in folding.intervals_of(steps).collect()
    ]
    assert sorted(found, key=lambda each: each[:2]) == [
        ("_a", 1, 4, b"2"),
        ("_amount", 3, 4, b"5"),
        ("_amount", 4, 6, b"-2"),
        ("_amount", 6, None, b"1"),
        ("_b", 3, 6, b"x"),
    ]


def test_a_state_and_its_hash_at_any_message(spark: SparkSession) -> None:
    right = State(variables={"_a": b"1", "_a_b": b"\xff\n"}).digest()
    wrong = bytes(32)
    changes = [("=", "_a_b", b"\xff\n"), ("=", "_a", b"1")]
    steps = folding.steps_of(
        parsed_frame(spark, [(1, 0, changes, right), (2, 1, [], right), (3, 1, [], wrong), (5, 1, [], right)])
    ).cache()
    intervals = folding.intervals_of(steps).cache()
    wanted = spark.createDataFrame([(1, 0), (1, 1), (1, 9), (2, 1)], "place INT, message BIGINT")
    digests = {
        (row.place, row.message): row.digest for row in folding.digests_at(intervals, wanted).collect()
    }
    empty = State().digest().hex()
    assert digests == {(1, 0): empty, (1, 1): right.hex(), (1, 9): right.hex(), (2, 1): empty}
    at = [(row.message, row.name) for row in folding.state_at(intervals, wanted).collect()]
    assert sorted(at) == [(1, "_a"), (1, "_a_b"), (9, "_a"), (9, "_a_b")]
    audited = folding.hash_faults(steps, intervals).collect()
    assert sorted((row.message, row.right) for row in audited) == [(1, True), (2, True), (3, False)]
