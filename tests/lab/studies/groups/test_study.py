"""From parameters to a report, on small groups."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from pyspark.sql import SparkSession

from linnet.lab.errors import LabError
from linnet.lab.report.writing import write_report
from linnet.lab.stages import Workshop
from linnet.lab.studies.groups.authors import Seen
from linnet.lab.studies.groups.parameters import GroupsParameters
from linnet.lab.studies.groups.study import checks, study
from linnet.lab.studies.groups.targets import Target
from linnet.lab.studies.groups.view import View

TINY = GroupsParameters(sizes=(8, 4, 6), repeats=1, scaling=16, batch=2, missed=2, fuzz=1, fuzz_ops=3)


def test_a_study_runs_once_and_resumes(spark: SparkSession, tmp_path: Path) -> None:
    said: list[str] = []
    report = study(Workshop(spark, tmp_path, said.append), TINY)
    write_report(report, tmp_path)
    assert report.ok, report.failures()
    assert said == ["counts", "times", "scaling", "beside", "report"]
    summary = json.loads((tmp_path / "summary.json").read_text())
    figures = {figure["id"]: figure["measured"] for figure in summary["figures"]}
    assert figures["bytes.update.8"] == 2232
    assert summary["parameters"]["raw measurements"] == "not here: tables as printed"
    said.clear()
    again = study(Workshop(spark, tmp_path, said.append), TINY)
    assert said == ["report"]
    assert again.figures == report.figures


def test_wrong_parameters_are_told_before_any_stage(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(LabError, match="--sizes"):
        study(Workshop(spark, tmp_path), GroupsParameters(sizes=(2,)))
    assert list(tmp_path.iterdir()) == []


def test_too_many_bytes_and_other_tables_fail_a_study_and_slowness_does_not(view: View) -> None:
    much = Target(id="T2", says="T2", unit="bytes", limit=10, measured=11, is_bytes=True)
    slow = Target(id="T1", says="T1", unit="ms", limit=10, measured=11)
    found = {each.id: each for each in checks(view, [much, slow])}
    assert not found["T2"].ok
    assert "T1" not in found
    assert found["equal"].ok
    good = {
        ("update", 8, "bytes"): Seen(2, 2 * 2389, 2389, 2389),
        ("update", 8, "sender"): Seen(1, 2_387_900, 1, 9),
    }
    assert {each.id: each.ok for each in checks(replace(view, authors=good), [])} == {
        "equal": True,
        "authors": True,
    }
    other = {("update", 8, "bytes"): Seen(2, 2 * 2390, 2390, 2390)}
    (told,) = [each for each in checks(replace(view, authors=other), []) if each.id == "authors"]
    assert not told.ok
    assert told.detail == "bytes.update.8: 2390, printed 2389"
