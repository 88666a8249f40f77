"""From parameters to a report, in small: run once, and resumed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from linnet.lab.errors import LabError
from linnet.lab.report.writing import write_report
from linnet.lab.stages import Workshop
from linnet.lab.studies.attacks.parameters import AttacksParameters
from linnet.lab.studies.attacks.study import study

TINY = AttacksParameters(names=("isolate", "fork"), repeats=2)


def test_a_study_runs_once_and_resumes(spark: SparkSession, tmp_path: Path) -> None:
    said: list[str] = []
    report = study(Workshop(spark, tmp_path, said.append), TINY)
    write_report(report, tmp_path)
    assert said == ["runs", "summary", "report"]
    assert report.ok
    summary = json.loads((tmp_path / "summary.json").read_text())
    measured = {figure["id"]: figure["measured"] for figure in summary["figures"]}
    assert 73.9 <= measured["arrived.isolate.100"] <= 100.0
    assert measured["arrived.fork.7.7"] == 100.0
    assert 0.0 < measured["told.fork.7.7"] < 1.0
    assert [table["title"] for table in summary["tables"]] == ["Attacks", "Honest nodes in trouble"]
    said.clear()
    again = study(Workshop(spark, tmp_path, said.append), TINY)
    assert said == ["report"]
    assert again.figures == report.figures


def test_wrong_parameters_are_told_before_any_stage(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(LabError, match="--attacks"):
        study(Workshop(spark, tmp_path), AttacksParameters(names=("no",)))
