"""The command: a table for people, one line for programs, errors for what cannot be run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from linnet.cli.app import told
from linnet.cli.lab.studies import groups

app = typer.Typer()
app.command("groups")(told(groups))

SMALL = (
    *("--sizes", "8,4", "--repeats", "1", "--scaling", "0", "--missed", "0", "--fuzz", "0", "--batch", "2"),
    *("--master", "local[2]"),
)


def typed(*words: str) -> Result:
    return CliRunner().invoke(app, [*words])


def test_a_study_is_run_and_told(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINNET_DATA", str(tmp_path))  # which has nothing of it: the printed tables do
    result = typed(*SMALL, "--out", str(tmp_path / "out"))
    assert result.exit_code == 0, result.output
    assert "bodies: update, 8 members" in result.stdout
    assert (tmp_path / "out" / "report.html").is_file()
    again = typed(*SMALL, "--out", str(tmp_path / "out"), "--json")
    found = json.loads(again.stdout)
    assert found["ok"] is True
    assert found["parameters"]["sizes"] == "8, 4"
    assert {stage["reused"] for stage in found["stages"]} == {True}


@pytest.mark.parametrize(
    ("words", "told_"),
    [
        (("--sizes", "8,many"), "--sizes '8,many'"),
        (("--sizes", "2"), "--sizes"),
        (("--scaling", "3"), "--scaling"),
        (("--repeats", "0"), "--repeats"),
        (("--data", "nowhere"), "nowhere"),
    ],
)
def test_wrong_input_is_told(spark: SparkSession, tmp_path: Path, words: tuple[str, ...], told_: str) -> None:
    result = typed(*words, "--out", str(tmp_path / "out"))
    assert result.exit_code in (1, 2)
    assert told_ in result.stderr


def test_a_folder_without_the_raw_measurements_is_told(spark: SparkSession, tmp_path: Path) -> None:
    result = typed("--data", str(tmp_path), "--out", str(tmp_path / "out"))
    assert result.exit_code == 2
    assert "there is no traffic.csv with time.csv.gz" in result.stderr
