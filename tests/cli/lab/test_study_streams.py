"""The command: errors for what cannot be run. A whole run is in tests/lab/studies/streams/test_study.py."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from linnet.cli.app import told
from linnet.cli.lab.studies import streams

app = typer.Typer()
app.command("streams")(told(streams))


def typed(*words: str) -> Result:
    return CliRunner().invoke(app, [*words])


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
