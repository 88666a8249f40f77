"""Every job over random logs says what the shipped classes say; and a difference would be seen."""

from __future__ import annotations

from pyspark.sql import SparkSession
from tests.lab.studies.places.conftest import LOGS, Looked

from linnet.lab.studies.places.agreement import compared
from linnet.lab.studies.places.answers import JOBS
from linnet.lab.studies.places.columns import ANSWERS


def test_every_job_agrees_with_the_shipped_classes_on_hundreds_of_logs(looked: Looked) -> None:
    found = {row.job: row for row in compared(looked.ours, looked.theirs).collect()}
    assert set(found) == set(JOBS)
    assert {job: (row.differences, row.first) for job, row in found.items()} == dict.fromkeys(JOBS, (0, None))
    assert all(row.answers >= 10 for row in found.values())
    assert found["state"].answers > 5 * LOGS
    assert found["members"].answers > 20 * LOGS


def test_what_differs_and_what_one_does_not_say_is_counted(spark: SparkSession) -> None:
    rows = [(1, "gaps", "fragment 2", "3"), (1, "gaps", "fragment 7", "7"), (2, "state", "1", "aa")]
    other = [(1, "gaps", "fragment 2", "4"), (2, "state", "1", "aa"), (2, "state", "2", "bb")]
    ours, theirs = (spark.createDataFrame(each, ANSWERS.columns) for each in (rows, other))
    found = {row.job: tuple(row)[1:] for row in compared(ours, theirs).collect()}
    assert found == {
        "gaps": (2, 2, "place 1, fragment 2: 3, not 4"),
        "state": (2, 1, "place 2, 2: nothing, not bb"),
    }
