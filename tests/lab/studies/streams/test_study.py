"""From parameters to a report, on small networks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from linnet.cli.app import app
from linnet.lab.errors import LabError
from linnet.lab.report.writing import write_report
from linnet.lab.stages import Workshop, schema_of
from linnet.lab.studies.streams.parameters import StreamsParameters
from linnet.lab.studies.streams.study import read_latency, study
from linnet.lab.tables import LATENCIES

SMALL = StreamsParameters(
    sizes=(16, 8),
    repeats=1,
    modes=("counter", "naive"),
    messages=4,
    degrees=(4,),
    redundancy_size=12,
    pair_nodes=12,
    pair_graphs=6,
    large=120,
    sources=5,
)


@pytest.mark.timeout(600)
def test_a_study_runs_once_and_resumes(spark: SparkSession, tmp_path: Path) -> None:
    said: list[str] = []
    report = study(Workshop(spark, tmp_path, said.append), SMALL)
    write_report(report, tmp_path)
    assert report.ok, report.failures()
    stages = [f"{mode}-{size}" for mode in ("counter", "naive") for size in (8, 16)]
    stages += ["beside", "graphs", "large-graphs", "pairs"]
    assert said == [*stages, "report"]
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert {table["title"][:9] for table in summary["tables"]} >= {"Table 5.2", "Table 5.3", "Table 5.4"}
    figures = {figure["id"]: figure["measured"] for figure in summary["figures"]}
    assert figures["completeness.naive"] == 1
    assert figures["paths.sampled.120"] > figures["paths.grown.16"]
    said.clear()
    again = study(Workshop(spark, tmp_path, said.append), SMALL)
    assert said == ["report"]
    assert again.figures == report.figures
    assert all(stage.reused for stage in again.stages)


def test_the_command_with_one_mode_and_nothing_beside(spark: SparkSession, tmp_path: Path) -> None:
    bare = ("--sizes", "8", "--repeats", "1", "--modes", "counter", "--messages", "2", "--degrees", "")
    none = ("--latency", "constant:10", "--pair-graphs", "0", "--large", "0", "--out", str(tmp_path))
    typed = ["lab", "study", "streams", *bare, *none]
    told = CliRunner().invoke(app, typed)
    assert told.exit_code == 0, told.output
    assert "mean one-way delay of the underlay" in told.stdout
    assert f"report: {tmp_path / 'report.html'}" in told.stdout
    assert (tmp_path / "report.html").is_file()
    found = json.loads(CliRunner().invoke(app, [*typed, "--json"]).stdout)
    assert found["ok"] is True
    assert found["parameters"]["sizes"] == "8"
    assert [(stage["name"], stage["reused"]) for stage in found["stages"]] == [
        ("counter-8", True),
        ("graphs", True),
    ]
    assert all(figure["published"] is None for figure in found["figures"])


def test_latencies_come_from_a_name_a_file_or_an_ingested_table(spark: SparkSession, tmp_path: Path) -> None:
    workshop = Workshop(spark, tmp_path)
    assert len(read_latency(workshop, "aws").regions) == 16
    rows = [(a, b, 1000 * (1 + i)) for i, (a, b) in enumerate((a, b) for a in "yx" for b in "xy")]
    workshop.stage("latencies", LATENCIES, lambda: spark.createDataFrame(rows, schema_of(LATENCIES)))
    table = read_latency(workshop, str(tmp_path))
    assert table.regions == ("x", "y")
    assert (table.between("y", "x"), table.between("x", "y")) == (0.001, 0.004)
    half = Workshop(spark, tmp_path / "half")
    half.stage("latencies", LATENCIES, lambda: spark.createDataFrame(rows[:3], schema_of(LATENCIES)))
    with pytest.raises(LabError, match="no delay from x to y"):
        read_latency(half, str(tmp_path / "half"))


def test_wrong_parameters_are_told_before_any_stage(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(LabError, match="--sizes"):
        study(Workshop(spark, tmp_path), StreamsParameters(sizes=()))
    assert list(tmp_path.iterdir()) == []
