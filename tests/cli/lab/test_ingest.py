"""``linnet lab ingest``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import typer
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from linnet.cli.lab.workloads import ingest
from linnet.cli.options import spread_options
from linnet.core.errors import LinnetError
from linnet.lab.stages import open_table
from linnet.lab.tables import MESSAGES, TEXTS

APP = typer.Typer()
APP.command()(spread_options(ingest))


def typed(*words: str | Path) -> Result:
    result = CliRunner().invoke(APP, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def zulip(tmp_path: Path) -> Path:
    path = tmp_path / "m.csv"
    path.write_text(
        "ts,stream_id,topic,user,chars\n1519660926,7,0,3,20\n1519660927,7,1,4,2\n1519660927,7,1,4\n"
    )
    return path


def test_what_was_read_is_counted(spark: SparkSession, tmp_path: Path, zulip: Path) -> None:
    result = typed("--format", "zulip", zulip, "--out", tmp_path / "out")
    assert result.exit_code == 0
    assert [line.split() for line in result.stdout.splitlines()[2:6]] == [
        ["files", "1"],
        ["messages", "2"],
        ["text", "2"],
        ["chats", "2"],
    ]
    last = [" ".join(line.split()) for line in result.stdout.splitlines()[-3:]]
    assert last == [
        "in quarantine 1",
        "it has not as many fields as the header 1",
        f"tables: {tmp_path / 'out'}",
    ]
    assert (tmp_path / "out" / "salt").exists()


def test_json_for_programs(spark: SparkSession, tmp_path: Path, zulip: Path) -> None:
    bots = tmp_path / "bots.csv"
    bots.write_text("user\n3\n")
    words = ("--format", "zulip", zulip, "--out", tmp_path / "out", "--salt", "s", "--bots", bots, "--json")
    result = typed(*words)
    counts = json.loads(result.stdout)
    assert (counts["messages"], counts["kinds"], counts["users"]) == (1, {"text": 1}, 1)
    assert counts["quarantined"]["left out: its user is on the list"] == 1
    assert not (tmp_path / "out" / "salt").exists()
    assert json.loads(typed(*words).stdout) == counts


def test_a_wrong_source_is_refused_before_any_work(tmp_path: Path, zulip: Path) -> None:
    zulip.write_text("ts,user\n1,2\n")
    with pytest.raises(LinnetError, match="has no column stream_id, topic, chars"):
        typed("--format", "zulip", zulip, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_text_is_kept_only_while_somebody_asks_for_it(spark: SparkSession, tmp_path: Path) -> None:
    chat = tmp_path / "tea.txt"
    chat.write_text("31.12.23, 21:15 - Ada: hello\n31.12.23, 21:16 - Ada: <Media omitted>\n")
    words = ("--format", "whatsapp", chat, "--out", tmp_path / "out", "--timezone", "Europe/Berlin", "--json")
    counts = json.loads(typed(*words, "--keep-text").stdout)
    assert (counts["kinds"], counts["first_ms"]) == ({"file": 1, "text": 1}, 1_704_053_700_000)
    texts = open_table(spark, tmp_path / "out" / "texts", TEXTS).frame.collect()
    assert [(row.text, row.chars, row.granularity) for row in texts] == [("hello", 5, "min"), ("", 0, "min")]
    assert json.loads(typed(*words).stdout) == counts
    assert not (tmp_path / "out" / "texts").exists()
    (ada,) = {row.user for row in texts}
    assert re.fullmatch("[0-9a-f]{16}", ada)
    messages = open_table(spark, tmp_path / "out" / "messages", MESSAGES).frame.collect()
    assert [(row.user, row.chars) for row in messages] == [(ada, 5), (ada, 0)]


def test_tables_around_messages(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "l.csv"
    path.write_text("from,to,ms\na,b,3\nb,a,4\n")
    words = ("--format", "latency", path, "--out", tmp_path / "out")
    with pytest.raises(LinnetError, match="give --values rtt or --values oneway"):
        typed(*words)
    result = typed(*words, "--values", "rtt", "--columns", "from, to, ms")
    assert [line.split() for line in result.stdout.splitlines()[2:6]] == [
        ["files", "1"],
        ["latencies", "2"],
        ["origins", "2"],
        ["targets", "2"],
    ]


def test_a_table_of_other_files_is_not_replaced_in_silence(
    spark: SparkSession, tmp_path: Path, zulip: Path
) -> None:
    words = ("--format", "zulip", zulip, "--out", tmp_path / "out")
    assert "replaced" not in typed(*words).stderr
    zulip.write_text(zulip.read_text() + "1519660928,7,1,4,2\n")
    assert "messages was made from other files; it is replaced" in typed(*words).stderr
