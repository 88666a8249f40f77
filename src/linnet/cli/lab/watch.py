"""``linnet lab watch``: what becomes of messages, while nodes run."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from linnet.cli.exits import Failure
from linnet.cli.lab.options import MasterOption, MemoryOption, workshop
from linnet.cli.options import JsonOption, examples
from linnet.cli.output import console, say, say_json

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery
    from rich.console import RenderableType

    from linnet.lab.audit.watch import Watch
    from linnet.lab.audit.watch_view import View

EPILOG = examples(
    "linnet lab watch ~/.local/share/linnet",
    "linnet lab watch homes --out watched --lateness 300",
    "linnet lab watch homes --once --json",
)

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


def watch(
    folder: Folder,
    out: Out = None,
    once: Once = False,
    every: Every = 2.0,
    lateness: Lateness = 60.0,
    master: MasterOption = "local[*]",
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Watch what becomes of messages while nodes run, by the traces that they write.

    An event counts as missing where it was not delivered when the traces have gone on for --lateness since
    its publication. `linnet lab audit` says why. Ctrl-C ends it; the next watch with the same --out goes on
    where this one was, and counts nothing twice. Lines that come later than that are counted as late.
    """
    place = out or folder / ".watch"
    with workshop(place, master, memory, quiet=True) as made:
        from linnet.lab.audit.watch import Watch

        watch = Watch(made.spark, folder, place, round(lateness * 1000))
        if once:
            watch.tailer.cut_all()
            query = watch.start(once=True)
            query.awaitTermination()
            _check(query)
        else:
            _follow(watch, every, as_json)
        view = watch.look()
    if as_json and once:
        say_json(view)
    elif once or not sys.stdout.isatty():
        console().print(table_of(view))


def _follow(watch: Watch, every: float, as_json: bool) -> None:
    """Until somebody ends it."""
    query = watch.start(once=False, seconds=every)
    try:
        if as_json:
            _until_ended(watch, query, every, lambda view: say_json(view))
        elif not sys.stdout.isatty():
            _until_ended(watch, query, every, lambda view: say(line_of(view)))
        else:
            from rich.live import Live

            with Live(table_of(watch.look()), console=console(), auto_refresh=False) as live:
                _until_ended(watch, query, every, lambda view: live.update(table_of(view), refresh=True))
    except KeyboardInterrupt:
        pass  # that is how it ends
    finally:
        query.stop()


def _until_ended(watch: Watch, query: StreamingQuery, every: float, show: Show) -> None:
    shown = None
    while True:
        watch.tailer.cut()
        _check(query)
        view = watch.look()
        if view is not shown:
            show(view)
            shown = view
        time.sleep(every)


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
        seen = datetime.fromtimestamp(n.last_us / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S")
        nodes.add_row(n.node[:_DIGITS], f"{n.rows:,}", seen, "" if n.is_up else "has said goodbye")
    wrong = ", ".join(f"{name} {events:,}" for name, events in view.wrong.items()) or "nothing"
    rest = (
        [f"{view.topic_count - len(view.topics):,} more topics"]
        if view.topic_count > len(view.topics)
        else []
    )
    return Group(topics, *rest, "", nodes, "", f"went wrong or was put right: {wrong}", line_of(view))
