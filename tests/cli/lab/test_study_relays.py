"""``linnet lab study relays``."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.lab.studies.relays.small_chats import drawn_messages, frame_of
from typer.testing import CliRunner

from linnet.cli.app import app
from linnet.lab.stages import Workshop
from linnet.lab.tables import MESSAGES

run = CliRunner()


def test_figures_are_printed_beside_published_ones(spark: SparkSession, tmp_path: Path) -> None:
    messages = frame_of(spark, drawn_messages(5, chats=6))
    Workshop(spark, tmp_path).stage("messages", MESSAGES, lambda: messages)
    out = tmp_path / "out"
    done = run.invoke(
        app, ["lab", "study", "relays", "--chats", str(tmp_path), "--out", str(out), "--sample", "0"]
    )
    assert done.exit_code == 0, done.output
    assert "chats left: selected" in done.stdout
    assert f"report: {out / 'report.html'}" in done.stdout
    assert (out / "report.html").exists()


@pytest.mark.parametrize(
    ("options", "says", "status"),
    [
        (["--presence", "phones"], "--presence phones and --sessions DIR belong together", 2),
        (["--sessions", "x"], "--presence phones and --sessions DIR belong together", 2),
        (["--sample", "0"], "there is no table messages", 1),
        (["--master", "yarn"], "--master 'yarn': write local", 1),
        (["--memory", "lots"], "--memory 'lots'", 1),
    ],
)
def test_what_is_wrong_is_said(
    spark: SparkSession, tmp_path: Path, options: list[str], says: str, status: int
) -> None:
    given = ["lab", "study", "relays", "--chats", str(tmp_path), "--out", str(tmp_path / "out"), *options]
    done = run.invoke(app, given)
    assert says in done.stderr
    assert done.exit_code == status
