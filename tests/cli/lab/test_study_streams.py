"""The command: a table for people, one line for programs, errors for what cannot be run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from linnet.cli.app import told
from linnet.cli.lab.study_streams import EPILOG, streams

app = typer.Typer()
app.command("streams", epilog=EPILOG)(told(streams))

SMALL = (
    *("--sizes", "8,12", "--repeats", "2", "--modes", "counter,aware", "--messages", "3", "--large", "0"),
    *("--degrees", "", "--pair-graphs", "3", "--pair-nodes", "10", "--master", "local[2]"),
)


def typed(*words: str) -> Result:
    return CliRunner().invoke(app, [*words])


def test_a_study_is_run_and_told(spark: SparkSession, tmp_path: Path) -> None:
    result = typed(*SMALL, "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert "mean one-way delay of the underlay" in result.stdout
    assert "report.html" in result.stdout
    assert (tmp_path / "report.html").is_file()
    again = typed(*SMALL, "--out", str(tmp_path), "--json")
    found = json.loads(again.stdout)
    assert found["ok"] is True
    assert found["parameters"]["sizes"] == "8, 12"
    assert {stage["reused"] for stage in found["stages"]} == {True}


@pytest.mark.parametrize(
    ("words", "told_"),
    [
        (("--sizes", "32,many"), "--sizes '32,many'"),
        (("--sizes", "2"), "--sizes"),
        (("--modes", "fast"), "none of counter"),
        (("--latency", "nowhere.csv"), "nowhere.csv"),
        (("--repeats", "0"), "--repeats"),
    ],
)
def test_wrong_input_is_told(spark: SparkSession, tmp_path: Path, words: tuple[str, ...], told_: str) -> None:
    result = typed(*words, "--out", str(tmp_path / "out"))
    assert result.exit_code in (1, 2)
    assert told_ in result.stderr
