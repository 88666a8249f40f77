"""``linnet lab watch``: once for scripts, and until somebody ends it."""

from __future__ import annotations

import json
import os
import signal
import threading
from io import StringIO
from pathlib import Path
from typing import cast

import pytest
import typer
from pyspark.sql import SparkSession
from rich.console import Console
from tests.lab.audit.homes import line_of, write_lines
from tests.lab.audit.tales import BEGIN, Writer
from typer.testing import CliRunner, Result

from linnet.cli.app import told
from linnet.cli.lab.audit import ended_by_signals, table_of, watch
from linnet.cli.lab.audit import line_of as view_line
from linnet.core.ids import DeviceId, EventId, PeerId, TopicId
from linnet.lab.audit.watch_view import NodeView, TopicView, View
from linnet.trace.records import Kind, Record

app = typer.Typer()
app.command("watch")(told(watch))

NODE, TOPIC = PeerId(b"n" * 32), TopicId(b"t" * 32)


def typed(*words: str) -> Result:
    return CliRunner().invoke(app, [*words, "--master", "local[2]"])


def write_trace(folder: Path) -> None:
    writer = Writer()
    writer.start(NODE, BEGIN)
    event = (TOPIC, EventId(b"e" * 32), DeviceId(b"d" * 8), 0)
    writer.write(NODE, Record(Kind.PUBLISHED, *event), BEGIN + 1)
    writer.write(NODE, Record(Kind.DELIVERED, *event, hops=0), BEGIN + 1.25)
    write_lines(folder / "trace" / "trace.jsonl", map(line_of, writer.rows))


def test_once_takes_in_what_there_is(spark: SparkSession, tmp_path: Path) -> None:
    write_trace(tmp_path)
    first = typed(str(tmp_path), "--once", "--json")
    assert first.exit_code == 0, first.stderr
    view = json.loads(first.stdout)
    (topic,) = view["topics"]
    assert (topic["published"], topic["delivered"], topic["p50_ms"], view["rows"]) == (1, 1, 251, 3)
    again = typed(str(tmp_path), "--once")
    assert "3 rows, 1 delivered, 0 missing" in again.stdout
    assert (tmp_path / ".watch" / "states").is_dir()


def test_it_follows_until_somebody_ends_it(spark: SparkSession, tmp_path: Path) -> None:
    write_trace(tmp_path)
    states = tmp_path / "out" / "states"
    ended = threading.Event()

    def end_when_seen() -> None:
        while not ended.wait(0.2):
            if states.is_dir() and any(path.name.isdecimal() for path in states.iterdir()):
                os.kill(os.getpid(), signal.SIGTERM)
                return

    ender = threading.Thread(target=end_when_seen)
    ender.start()
    try:
        result = typed(str(tmp_path), "--out", str(tmp_path / "out"), "--every", "0.5")
    finally:
        ended.set()
        ender.join()
    assert result.exit_code == 0, result.stderr
    assert "3 rows, 1 delivered" in result.stdout
    assert not spark.streams.active


def test_a_signal_in_the_middle_of_a_look_waits_for_its_end() -> None:
    before, is_answered = signal.getsignal(signal.SIGINT), False
    with ended_by_signals() as ended:
        os.kill(os.getpid(), signal.SIGINT)
        is_answered = True
        assert signal.getsignal(signal.SIGINT) is before, "a second Ctrl-C interrupts"
    assert is_answered
    assert ended.is_set()


@pytest.mark.parametrize("words", [("--once",), ()])
def test_a_folder_that_is_not_there_is_wrong_usage(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert typed(str(tmp_path / "none"), *words).exit_code == 2


def test_a_view_for_people() -> None:
    topic = TopicView(
        topic="ab" * 32,
        readers=3,
        published=1234,
        delivered=3700,
        open=2,
        missing=1,
        duplicates=9,
        p50_ms=12,
        p99_ms=None,
    )
    view = View(
        watermark_us=0,
        topics=(topic,),
        topic_count=4,
        wrong={"dropped quota": 7},
        # The second one's clock shows a time that no calendar has.
        nodes=(NodeView("cd" * 32, 1_700_000_000_000_000, 5, False), NodeView("ef" * 32, 2**63 - 1, 0, True)),
        node_count=2,
        rows=5,
        late=1,
        bad=2,
        unpublished=0,
        repeated=0,
    )
    console = Console(width=200, file=StringIO())
    console.print(table_of(view))
    shown = cast(StringIO, console.file).getvalue()
    for words in (
        "abababab",
        "1,234",
        "3 more topics",
        "dropped quota 7",
        "2023-11-14 22:13:20",
        "goodbye",
        "year 294247?",
    ):
        assert words in shown
    assert view_line(view) == "5 rows, 3,700 delivered, 1 missing, 1 late lines, 2 bad ones"
