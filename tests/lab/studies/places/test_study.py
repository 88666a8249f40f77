"""From parameters to a report, on a few logs and a small large one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from linnet.cli.app import app
from linnet.lab.errors import LabError
from linnet.lab.report.writing import write_report
from linnet.lab.stages import Workshop
from linnet.lab.studies.places.parameters import PlacesParameters
from linnet.lab.studies.places.study import study

TINY = PlacesParameters(logs=24, fragments=3000, ids=3, seed=5)
AS_TYPED = ("--logs", "24", "--fragments", "3000", "--ids", "3", "--seed", "5")
STAGES = [
    "units", "fragments", "random-taken", "random-parsed", "random-intervals", "answers", "reference",
    "agreement", "truths",
    "log", "taken", "parsed", "intervals", "states", "hashes", "messages", "gaps", "generations", "verdicts",
    "report",
]  # fmt: skip


def test_a_study_runs_once_and_the_command_resumes_it(spark: SparkSession, tmp_path: Path) -> None:
    said: list[str] = []
    report = study(Workshop(spark, tmp_path, said.append), TINY)
    write_report(report, tmp_path)
    wrong = [check for check in report.failures() if not check.id.startswith("equal.")]
    assert not wrong, wrong
    different = [check for check in report.failures() if "not" in check.detail]
    assert not different, different
    assert said == STAGES
    summary = json.loads((tmp_path / "summary.json").read_text())
    figures = {figure["id"]: figure["measured"] for figure in summary["figures"]}
    assert 2500 < figures["large.rows"] < 3500
    assert figures["large.state-at-id"] > 0
    assert "state at id" in (tmp_path / "report.html").read_text()
    again = CliRunner().invoke(app, ["lab", "study", "places", *AS_TYPED, "--out", str(tmp_path), "--json"])
    found = json.loads(again.stdout)
    assert {stage["reused"] for stage in found["stages"]} == {True}
    assert found["figures"] == summary["figures"]
    assert found["parameters"] == {"logs": 24, "fragments": 3000, "ids": 3, "seed": 5}


def test_wrong_parameters_are_told_before_any_stage(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(LabError, match="--logs"):
        study(Workshop(spark, tmp_path), replace(TINY, logs=0))
    assert list(tmp_path.iterdir()) == []
