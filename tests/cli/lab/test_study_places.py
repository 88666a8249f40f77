"""The command: figures for people, one line for programs, errors for what cannot be run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from linnet.cli.app import told
from linnet.cli.lab.study_places import EPILOG, places

app = typer.Typer()
app.command("places", epilog=EPILOG)(told(places))


def typed(*words: str) -> Result:
    return CliRunner().invoke(app, [*words])


def test_a_study_is_run_and_told(spark: SparkSession, tmp_path: Path) -> None:
    small = ("--logs", "40", "--fragments", "0", "--master", "local[2]", "--out", str(tmp_path / "out"))
    result = typed(*small, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["ok"] is True
    assert found["parameters"] == {"logs": 40, "fragments": 0, "ids": 4, "seed": 1}
    again = typed(*small)
    assert "answers about random logs: state" in again.stdout
    assert (tmp_path / "out" / "report.html").is_file()


@pytest.mark.parametrize(
    ("words", "told_"),
    [(("--logs", "0"), "--logs"), (("--fragments", "-1"), "--fragments"), (("--ids", "none"), "--ids")],
)
def test_wrong_input_is_told(tmp_path: Path, words: tuple[str, ...], told_: str) -> None:
    result = typed(*words, "--out", str(tmp_path / "out"))
    assert result.exit_code == 2
    assert told_ in result.stderr
