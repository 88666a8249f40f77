"""From parameters to a report, in small: run once, and resumed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from linnet.lab.errors import LabError
from linnet.lab.report.writing import write_report
from linnet.lab.stages import Workshop
from linnet.lab.studies.content import workload
from linnet.lab.studies.content.parameters import ContentParameters
from linnet.lab.studies.content.study import study

TINY = ContentParameters(nodes=(15,), staged=15, backups=(1,), long=0)


def test_a_study_runs_once_and_resumes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every scenario has a test of its own in the simulation: here two are run."""
    every = workload.scenario_cases
    monkeypatch.setattr(
        "linnet.lab.studies.content.study.scenario_cases",
        lambda parameters: [
            case
            for case in every(parameters)
            if case.scenario in ("normal", "fault") and case.variant == "base-reliable"
        ],
    )
    said: list[str] = []
    report = study(Workshop(spark, tmp_path, said.append), TINY)
    write_report(report, tmp_path)
    assert said == ["scenarios", "rounds", "summary", "correctness", "cumulated", "report"]
    assert report.ok
    summary = json.loads((tmp_path / "summary.json").read_text())
    figures = {figure["id"]: figure["measured"] for figure in summary["figures"]}
    assert figures["reliability.normal.base-reliable.15"] == 100.0
    assert figures["latency.mean.fault.base-reliable.15"] > 0.0
    assert figures["stages.processor.1.4.15"] > figures["stages.processor.1.1.15"] > 0.0
    said.clear()
    again = study(Workshop(spark, tmp_path, said.append), TINY)
    assert said == ["report"]
    assert again.figures == report.figures


def test_wrong_parameters_are_told_before_any_stage(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(LabError, match="--nodes"):
        study(Workshop(spark, tmp_path), ContentParameters(nodes=(2,)))
