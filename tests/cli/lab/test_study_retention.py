"""The command: a report for people, one line for programs, errors before Spark starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from pyspark.sql import SparkSession
from tests.lab.studies.relays.small_chats import drawn_messages, frame_of
from typer.testing import CliRunner, Result

from linnet.cli.app import told
from linnet.cli.lab.relay_studies import Presence, retention
from linnet.lab.stages import Workshop
from linnet.lab.studies.retention.parameters import PresenceBy, RetentionParameters
from linnet.lab.tables import MESSAGES

app = typer.Typer()
app.command("retention")(told(retention))


def typed(*words: str) -> Result:
    return CliRunner().invoke(app, [*words])


def test_a_report_for_people_and_for_programs(spark: SparkSession, tmp_path: Path) -> None:
    chats, out = tmp_path / "chats", tmp_path / "out"
    Workshop(spark, chats).stage("messages", MESSAGES, lambda: frame_of(spark, drawn_messages(61)))
    words = (
        "--chats",
        str(chats),
        "--out",
        str(out),
        "--retentions",
        "12h,none,2d,forever",
        "--relays",
        "0,2",
    )
    result = typed(*words)
    assert result.exit_code == 0, result.output
    assert f"report: {out / 'report.html'}" in result.stdout
    assert "recommended retention, all rooms, margin 3" in result.stdout
    assert "How long relays should keep events" in (out / "report.html").read_text()

    again = typed(*words, "--served", "0.5", "--json")
    summary = json.loads(again.stdout)
    assert (summary["study"], summary["ok"]) == ("retention", True)
    assert summary["parameters"]["retentions"] == "none, 12 h, 2 d, 30 d, unlimited"
    assert summary["parameters"]["served"] == 0.5
    assert all(stage["reused"] for stage in summary["stages"])
    held = next(table for table in summary["tables"] if table["title"].startswith("Held in sum"))
    assert {row[1] for row in held["rows"]} == {0, 2}


@pytest.mark.parametrize(
    ("words", "told_"),
    [
        (("--presence", "phones"), "--sessions DIR belong together"),
        (("--presence", "both"), "--sessions DIR belong together"),
        (("--sessions", "phones"), "--sessions DIR belong together"),
        (("--retentions", "1h,soon"), "'soon' is no length of time"),
        (("--relays", "one"), "--relays 'one': write numbers"),
        (("--relays", "1,-1"), "relays are from 0"),
        (("--served", "1.5"), "--served"),
        (("--lively", "-1"), "--lively"),
    ],
)
def test_wrong_input_is_told_before_any_work(tmp_path: Path, words: tuple[str, ...], told_: str) -> None:
    result = typed("--chats", str(tmp_path), "--out", str(tmp_path / "out"), *words)
    assert result.exit_code in (1, 2)
    assert told_ in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "out").exists()


def test_without_chats_it_says_how_to_make_some(spark: SparkSession, tmp_path: Path) -> None:
    result = typed("--chats", str(tmp_path), "--out", str(tmp_path / "out"))
    assert result.exit_code == 1
    assert "`linnet lab ingest` makes one" in result.stderr


def test_the_same_defaults_and_choices_as_in_the_lab() -> None:
    """The command imports the lab late, so its own words for these must not drift."""
    from linnet.cli.lab.options import read_numbers
    from linnet.cli.lab.relay_studies import _milliseconds

    assert [each.value for each in Presence] == [each.value for each in PresenceBy]
    wanted = RetentionParameters(chats=Path("chats"))
    assert retention.__defaults__ is not None
    presence, _, retentions, relays, served, lively, seed = retention.__defaults__[:7]
    assert (presence.value, _milliseconds(retentions), read_numbers("--relays", relays)) == (
        wanted.presence.value,
        wanted.retentions,
        wanted.relays,
    )
    assert (served, lively * 1000, seed) == (wanted.served, wanted.lively, wanted.seed)
