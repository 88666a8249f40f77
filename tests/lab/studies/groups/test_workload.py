"""The rows of a study."""

from __future__ import annotations

from collections import Counter

from pyspark.sql import SparkSession

from linnet.lab.studies.groups import workload
from linnet.lab.studies.groups.parameters import GroupsParameters
from linnet.lab.studies.groups.workload import COUNTED, PENDING, PUBLISHED, Case, cases_frame, seed_of

PARAMETERS = GroupsParameters(sizes=(8, 32, 16), repeats=2, missed=5, fuzz=3)


def test_every_operation_is_timed_at_every_size_and_the_largest_first() -> None:
    cases = workload.timed_cases(PARAMETERS)
    assert PUBLISHED == ("create", "add", "remove", "update", "message")
    assert Counter((case.operation, case.size) for case in cases) == {
        (operation, size): 2 for operation in PUBLISHED for size in (8, 16, 32)
    }
    assert [case.size for case in cases] == sorted((case.size for case in cases), reverse=True)
    assert {case.listeners for case in cases} == {0}


def test_what_is_counted_is_counted_with_two_seeds() -> None:
    cases = workload.counted_cases(PARAMETERS)
    assert {case.batch for case in cases if case.operation == "state"} == set(PENDING)
    others = [case for case in cases if case.operation != "state"]
    assert len(others) == 3 * 8 * COUNTED
    assert {case.repeat for case in others} == {0, 1}
    assert len(set(cases)) == len(cases)


def test_operations_of_a_repeat_share_their_devices_and_repeats_do_not() -> None:
    cases = workload.timed_cases(PARAMETERS)
    assert len({case.seed for case in cases}) == 3 * 2
    assert seed_of(1, 8, 0) != seed_of(2, 8, 0)


def test_what_is_not_wanted_is_left_out() -> None:
    none = GroupsParameters(sizes=(8,), missed=0, fuzz=0, scaling=0)
    assert {case.operation for case in workload.beside_cases(none)} == {"updates", "view"}
    assert workload.scaled_cases(none) == []
    assert {case.operation for case in workload.beside_cases(PARAMETERS)} == {
        "updates", "view", "catch-up", "fuzz",
    }  # fmt: skip


def test_rows_are_the_cases(spark: SparkSession) -> None:
    cases = workload.counted_cases(GroupsParameters(sizes=(8,)))
    frame = cases_frame(spark, cases)
    assert [Case(**row.asDict()) for row in frame.collect()] == cases
    assert frame.rdd.getNumPartitions() == len(cases)
