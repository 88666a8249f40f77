"""Tasks of Spark against the same work in a plain loop."""

from __future__ import annotations

import gc

from pyspark.sql import SparkSession

from linnet.lab.studies.groups.circle import PARTS
from linnet.lab.studies.groups.run import count, counted, measure, timed
from linnet.lab.studies.groups.workload import ADD, FUZZ, SINGLE, STATE, UPDATE, VIEW, Case
from linnet.lab.tables import GROUP_COUNTS, GROUP_TIMES


def test_what_tasks_count_is_what_a_plain_loop_counts(spark: SparkSession) -> None:
    cases = [
        Case(UPDATE, SINGLE, 1, 6, 0, 5, 1),
        Case(ADD, SINGLE, 1, 4, 1, 6, 1),
        Case(STATE, SINGLE, 1, 4, 0, 5, 1),
    ]
    expected = [
        (case.operation, case.acks, case.batch, case.size, case.repeat, *row)
        for case in cases
        for row in count(case)
    ]
    frame = counted(spark, cases)
    assert sorted(tuple(row) for row in frame.collect()) == sorted(expected)
    assert frame.groupBy(*GROUP_COUNTS.grain).count().where("count > 1").count() == 0


def test_what_tasks_time_has_every_role_and_part(spark: SparkSession) -> None:
    cases = [Case(ADD, SINGLE, 1, 4, 0, 5), Case(FUZZ, SINGLE, 2, 4, 0, 5), Case(VIEW, SINGLE, 4, 4, 0, 5)]
    frame = timed(spark, cases)
    rows = frame.collect()
    roles = {row.role for row in rows if row.operation == ADD}
    assert roles == {"sender", "recipient", "newcomer", "machine"}
    assert {row.part for row in rows if row.role == "recipient"} == set(PARTS)
    recipient = {row.part: row for row in rows if row.role == "recipient"}
    assert recipient["follow"].clients == 3
    assert recipient["follow"].events == 3 * 3
    assert all(row.value > 0 for row in rows if row.events and row.role != "machine")
    assert frame.groupBy(*GROUP_TIMES.grain).count().where("count > 1").count() == 0


def test_garbage_is_collected_again_after_a_run() -> None:
    assert gc.isenabled()
    rows = measure(Case(UPDATE, SINGLE, 1, 4, 0, 5))
    assert gc.isenabled()
    assert rows[-1][:2] == ("machine", "load")
