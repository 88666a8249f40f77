"""The command: a table for people, one line for programs, errors before Spark starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from linnet.cli.app import told
from linnet.cli.lab.workloads import chats
from linnet.lab.stages import open_table
from linnet.lab.tables import MESSAGES

app = typer.Typer()
app.command("chats")(told(chats))

SMALL = ("--chats", "20", "--messages", "5000", "--seed", "3", "--master", "local[2]")


def typed(*words: str) -> Result:
    return CliRunner().invoke(app, [*words])


def test_chats_are_drawn_and_told(spark: SparkSession, tmp_path: Path) -> None:
    result = typed(*SMALL, "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    said = result.stdout
    assert "chats with two members" in said
    assert "5,000 rows" in said
    assert open_table(spark, tmp_path / "messages", MESSAGES).rows == 5_000

    again = typed(*SMALL, "--out", str(tmp_path), "--json")
    found = json.loads(again.stdout)
    assert f"data_sha256: {found['data_sha256']}" in said
    assert (found["chats"], found["messages"], found["seed"]) == (20, 5_000, 3)
    marks = {figure["id"]: (figure["published"], figure["measured"]) for figure in found["figures"]}
    assert marks["members.largest"] == (252, 252)
    assert [(stage["name"], stage["reused"]) for stage in found["stages"]] == [
        ("messages", True),
        ("chats", True),
    ]


@pytest.mark.parametrize(
    ("words", "told_"),
    [
        (("--chats", "20", "--messages", "30"), "who write at least once"),
        (("--chats", "2", "--messages", "5000000"), "at most 2,000,000 messages"),
        (("--chats", "0"), "--chats"),
        (("--granularity", "h"), "--granularity"),
    ],
)
def test_wrong_input_is_told_before_any_work(tmp_path: Path, words: tuple[str, ...], told_: str) -> None:
    result = typed(*words, "--out", str(tmp_path / "out"))
    assert result.exit_code in (1, 2)
    assert told_ in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "out").exists()


def test_the_same_limits_and_choices_as_in_the_lab() -> None:
    """The command imports the lab late, so its own words for these must not drift."""
    from linnet.cli.lab.workloads import Granularity
    from linnet.lab.generate import facts, plan
    from linnet.lab.generate.job import Wanted

    assert [each.value for each in Granularity] == [each.value for each in plan.Granularity]
    assert (Wanted().chats, Wanted().messages) == (facts.CHATS, facts.MESSAGES)
    assert chats.__defaults__ is not None
    assert chats.__defaults__[:2] == (facts.CHATS, facts.MESSAGES)
