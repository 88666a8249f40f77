"""What became of every message, by the traces of nodes: afterwards, and while they run."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.lab.options import OutOption, SparkOptions, lab_extra, workshop
from linnet.cli.moments import utc_text
from linnet.cli.options import with_examples
from linnet.cli.output import console, say, say_json, say_raw, say_table, warn

if TYPE_CHECKING:
    from types import FrameType

    from pyspark.sql.streaming.query import StreamingQuery
    from rich.console import RenderableType

    from linnet.lab.audit.audit import Audited
    from linnet.lab.audit.watch import Watch
    from linnet.lab.audit.watch_view import View

Traces = Annotated[
    list[Path],
    typer.Argument(metavar="TRACE...", help="Files of traces (JSON lines, Parquet), or folders with some."),
]
Grace = Annotated[
    float,
    typer.Option(
        min=0, metavar="SECONDS", help="How long before a trace ends an event may still be on its way."
    ),
]
Skew = Annotated[float, typer.Option(min=0, metavar="MS", help="How far clocks may differ before a warning.")]


@with_examples(
    "linnet lab audit ~/.local/share/linnet/trace /mnt/other/trace --out audit",
    "linnet lab audit run.parquet --grace 30 --out audit --json",
    "linnet demo --keep run && linnet lab audit run --out audit",
)
def audit(
    traces: Traces,
    out: OutOption,
    grace: Grace = 10.0,
    skew: Skew = 10.0,
    *,
    spark: SparkOptions,
) -> None:
    """Find out what became of every message, by the traces of nodes.

    For each topic and reader: what was owed, what was delivered and how fast, what was not and why.
    Exits 1 if anything was lost without a record. Tables, report.html and summary.json go to --out.
    Traces of level full tell all; those of level loss only counts.
    """
    with lab_extra():
        from linnet.lab.audit.pipeline import Parameters
        from linnet.lab.audit.sources import find_sources

        find_sources(traces, out)  # what is no trace is told before Spark starts
        parameters = Parameters(grace_ms=round(grace * 1000), skew_ms=round(skew))
    with spark.open_workshop(out) as made:
        from linnet.lab.audit.audit import audit as run_audit

        audited = run_audit(made, traces, parameters)
    if spark.as_json:
        say_raw((out / "summary.json").read_bytes().strip())
    else:
        _say(audited, out)
    for check in audited.report.failures():
        warn(f"linnet: does not hold: {check.says}: {check.detail}")
    if not audited.report.ok:
        raise typer.Exit(ExitCode.FAILED)


def _say(audited: Audited, out: Path) -> None:
    from linnet.lab.audit.report import READERS, reader_rows

    rows = reader_rows(audited.findings, audited.labels)
    rows.sort(key=lambda row: (row[1], row[0]))
    say_table(READERS, [tuple("-" if cell is None else cell for cell in row) for row in rows])
    for line in audited.report.abstract:
        say(line)
    say(f"report: {out / 'report.html'}")


Folder = Annotated[
    Path,
    typer.Argument(
        metavar="DIR", file_okay=False, exists=True, help="Where nodes write traces, at any depth."
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="DIR", file_okay=False, help="Where it keeps its place.", show_default="DIR/.watch"
    ),
]
Once = Annotated[bool, typer.Option("--once", help="Take in what there is, print, and end.")]
Every = Annotated[float, typer.Option(min=0.5, metavar="SECONDS", help="How often it looks.")]
Lateness = Annotated[
    float,
    typer.Option(
        min=0, metavar="SECONDS", help="How much later than others a line may come and still count."
    ),
]
Show: TypeAlias = "Callable[[View], None]"
_DIGITS = 8


@with_examples(
    "linnet lab watch ~/.local/share/linnet",
    "linnet lab watch homes --out watched --lateness 300",
    "linnet lab watch homes --once --json",
)
def watch(
    folder: Folder,
    out: Out = None,
    once: Once = False,
    every: Every = 2.0,
    lateness: Lateness = 60.0,
    *,
    spark: SparkOptions,
) -> None:
    """Watch what becomes of messages while nodes run, by the traces that they write.

    An event counts as missing where it was not delivered when the traces have gone on for --lateness since
    its publication. `linnet lab audit` says why. Ctrl-C ends it; the next watch with the same --out goes on
    where this one was, and counts nothing twice. Lines that come later than that are counted as late.
    """
    place = out or folder / ".watch"
    with workshop(place, spark.master, spark.memory, quiet=True) as made:
        from linnet.lab.audit.watch import Watch

        watch = Watch(made.spark, folder, place, round(lateness * 1000))
        if once:
            watch.tailer.cut_all()
            query = watch.start(once=True)
            query.awaitTermination()
            _check(query)
        else:
            _follow(watch, every, spark.as_json)
        view = watch.look()
    if spark.as_json and once:
        say_json(view)
    elif once or not sys.stdout.isatty():
        console().print(table_of(view))


def _follow(watch: Watch, every: float, as_json: bool) -> None:
    """Until somebody ends it."""
    query = watch.start(once=False, seconds=every)
    try:
        with ended_by_signals() as ended:
            if as_json:
                _until(ended, watch, query, every, lambda view: say_json(view))
            elif not sys.stdout.isatty():
                _until(ended, watch, query, every, lambda view: say(line_of(view)))
            else:
                from rich.live import Live

                with Live(table_of(watch.look()), console=console(), auto_refresh=False) as live:
                    _until(ended, watch, query, every, lambda view: live.update(table_of(view), refresh=True))
    finally:
        query.stop()


@contextmanager
def ended_by_signals() -> Generator[threading.Event]:
    """Ctrl-C and SIGTERM end the watch between two looks; a second one interrupts whatever is under way.

    An exception in the middle of a question to Java would leave its answer on the connection, and the next
    question, to stop the query, would fail for that.
    """
    ended = threading.Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def end(number: int, frame: FrameType | None) -> None:
        ended.set()
        restore()

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    for number in before:
        signal.signal(number, end)
    try:
        yield ended
    finally:
        restore()


def _until(ended: threading.Event, watch: Watch, query: StreamingQuery, every: float, show: Show) -> None:
    shown = None
    while not ended.is_set():
        watch.tailer.cut()
        _check(query)
        view = watch.look()
        if view is not shown:
            show(view)
            shown = view
        ended.wait(every)


def _check(query: StreamingQuery) -> None:
    if (error := query.exception()) is not None:
        raise Failure(f"the watch has failed: {str(error).strip().splitlines()[0]}")


def line_of(view: View) -> str:
    """A view as one line, for a log."""
    missing, delivered = (sum(getattr(t, name) for t in view.topics) for name in ("missing", "delivered"))
    lines = f"{view.late:,} late lines, {view.bad:,} bad ones"
    return f"{view.rows:,} rows, {delivered:,} delivered, {missing:,} missing, {lines}"


def table_of(view: View) -> RenderableType:
    """A view for people."""
    from rich.console import Group
    from rich.table import Table

    topics = Table(box=None, pad_edge=False, title_justify="left")
    topics.add_column("topic")
    for column in (
        "readers",
        "published",
        "delivered",
        "on their way",
        "missing",
        "duplicates",
        "p50 ms",
        "p99 ms",
    ):
        topics.add_column(column, justify="right")
    for t in view.topics:
        numbers = (t.readers, t.published, t.delivered, t.open, t.missing, t.duplicates, t.p50_ms, t.p99_ms)
        topics.add_row(t.topic[:_DIGITS], *("-" if each is None else f"{each:,}" for each in numbers))
    nodes = Table(box=None, pad_edge=False)
    for column in ("node", "rows", "seen last", ""):
        nodes.add_column(column, justify="right" if column == "rows" else "left")
    for n in view.nodes:
        seen = utc_text(n.last_us / 1e6)
        nodes.add_row(n.node[:_DIGITS], f"{n.rows:,}", seen, "" if n.is_up else "has said goodbye")
    wrong = ", ".join(f"{name} {events:,}" for name, events in view.wrong.items()) or "nothing"
    rest = (
        [f"{view.topic_count - len(view.topics):,} more topics"]
        if view.topic_count > len(view.topics)
        else []
    )
    return Group(topics, *rest, "", nodes, "", f"went wrong or was put right: {wrong}", line_of(view))
