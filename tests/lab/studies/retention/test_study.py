"""The whole study on small chats, twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from pyspark.sql import SparkSession
from tests.lab.studies.relays.small_chats import Message, drawn_messages, frame_of

from linnet.lab.errors import LabError
from linnet.lab.report.writing import write_report
from linnet.lab.stages import Workshop
from linnet.lab.studies.retention.parameters import PresenceBy, RetentionParameters
from linnet.lab.studies.retention.study import study
from linnet.lab.tables import MESSAGES, SESSIONS


def keep(spark: SparkSession, folder: Path, messages: list[Message]) -> Path:
    Workshop(spark, folder).stage("messages", MESSAGES, lambda: frame_of(spark, messages))
    return folder


@pytest.fixture(scope="module")
def chats(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return keep(spark, tmp_path_factory.mktemp("chats"), drawn_messages(51, chats=12))


@pytest.fixture(scope="module")
def phones(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("phones")
    rows = [("a", 0, 9_000_000, 604_800_000), ("b", 50_000_000, 60_000_000, 604_800_000)]
    Workshop(spark, folder).stage("sessions", SESSIONS, lambda: spark.createDataFrame(rows, SESSIONS.columns))
    return folder


def test_a_report_comes_of_chats_and_the_second_time_nothing_is_run(
    spark: SparkSession, chats: Path, phones: Path, tmp_path: Path
) -> None:
    parameters = RetentionParameters(
        chats=chats, presence=PresenceBy.BOTH, sessions=phones, retentions=(60_000, 86_400_000)
    )
    report = study(Workshop(spark, tmp_path), parameters)
    assert report.failures() == []
    assert [stage.name for stage in report.stages] == ["outcomes", "profiles", "pooled"]
    write_report(report, tmp_path)
    assert (tmp_path / "report.html").exists()
    assert [section.title for section in report.sections][4:] == [
        "Classes of rooms, phones",
        *(f"Classes of rooms, margin {number}" for number in range(1, 6)),
    ]
    again = study(Workshop(spark, tmp_path), parameters)
    assert all(stage.reused for stage in again.stages)
    assert (again.figures, again.sections) == (report.figures, report.sections)

    paced = study(Workshop(spark, tmp_path), replace(parameters, lively=1))
    assert [stage.name for stage in paced.stages if not stage.reused] == ["pooled"]


def test_chats_that_tell_nothing_are_told(spark: SparkSession, tmp_path: Path) -> None:
    alone = [Message("c", 1_000 * time, "u", 5, "text", "s") for time in (1, 50, 99)]
    folder = keep(spark, tmp_path / "chats", alone)
    with pytest.raises(LabError, match="two members"):
        study(Workshop(spark, tmp_path / "out"), RetentionParameters(chats=folder))
