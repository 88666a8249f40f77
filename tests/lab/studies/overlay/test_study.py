"""From parameters to a report, in small: run once, and resumed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from pyspark.sql import SparkSession
from tests.lab.studies.overlay.conftest import SMALL

from linnet.lab.errors import LabError
from linnet.lab.report.writing import write_report
from linnet.lab.stages import Workshop
from linnet.lab.studies.overlay import workload
from linnet.lab.studies.overlay.data import read_surroundings
from linnet.lab.studies.overlay.parameters import OverlayParameters
from linnet.lab.studies.overlay.study import hash_of, study

TINY = replace(SMALL, nodes=16, topics=3, growing=(2,), attack_rounds=10, ring_sizes=(20,))
STAGES = ("filters", "rings", "sampling")


def test_a_study_runs_once_and_resumes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole overlays have tests of their own: here the stages that take no time are run."""
    every = workload.stages
    monkeypatch.setattr(
        "linnet.lab.studies.overlay.study.stages",
        lambda parameters, around: {name: every(parameters, around)[name] for name in STAGES},
    )
    said: list[str] = []
    report = study(Workshop(spark, tmp_path, said.append), TINY)
    write_report(report, tmp_path)
    assert said == [*STAGES, "report"]
    summary = json.loads((tmp_path / "summary.json").read_text())
    figures = {figure["id"]: figure["measured"] for figure in summary["figures"]}
    assert figures["hops.20.3"] > 1.0
    assert 0.5 < figures["filters.drawn.k1.e3.attack"] <= 1.0
    assert summary["parameters"]["data"] == "none"
    said.clear()
    again = study(Workshop(spark, tmp_path, said.append), TINY)
    assert said == ["report"]
    assert again.figures == report.figures
    said.clear()
    study(Workshop(spark, tmp_path, said.append), replace(TINY, seed=TINY.seed + 1))
    assert said == [*STAGES, "report"], "another seed is another study"


def test_wrong_parameters_are_told_before_any_stage(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(LabError, match="--nodes"):
        study(Workshop(spark, tmp_path), OverlayParameters(nodes=2))


def test_surroundings_have_one_name() -> None:
    around = read_surroundings("", 16, 4, 2, 1)
    assert hash_of(around) == hash_of(read_surroundings("", 16, 4, 2, 1))
    assert hash_of(around) != hash_of(replace(around, weeks=(((0, 1),),)))
