"""``linnet subscribe``: print what is said in a stream."""

from __future__ import annotations

from typing import Annotated

import typer

from linnet.cli.moments import parse_since, wall_clock
from linnet.cli.options import HomeOption, JsonOption, StreamArgument, examples

EPILOG = examples(
    "linnet subscribe weather",
    "linnet subscribe weather --from beginning --count 10",
    "linnet subscribe me/log --name archiver >> log.txt",
    "linnet subscribe weather --from 15m --json | jq -r .text",
    "linnet subscribe pictures --count 1 --raw > cat.png",
)

From = Annotated[
    str,
    typer.Option(
        "--from", metavar="TIME", help="beginning, now, so long ago (15m, 2h, 7d), or 2026-11-15T09:30."
    ),
]
Count = Annotated[int | None, typer.Option("--count", metavar="N", min=1, help="End after N events.")]
Name = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="Durable: go on after the last event that was printed."),
]
Unordered = Annotated[
    bool, typer.Option("--unordered", help="Do not wait for gaps: print events as they come.")
]
Receipts = Annotated[bool, typer.Option("--receipts", help="Let publishers learn that it arrived here.")]
Raw = Annotated[
    bool,
    typer.Option(
        "--raw", help="Print bodies as they are, also what a terminal would obey; else that is written out."
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout", metavar="SECONDS", min=0.001, help="End after so long; 1 if --count is not reached."
    ),
]


def subscribe(
    stream: StreamArgument,
    since: From = "now",
    count: Count = None,
    name: Name = None,
    unordered: Unordered = False,
    receipts: Receipts = False,
    raw: Raw = False,
    timeout: Timeout = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print what is said in a stream, one event per line, until Ctrl-C or as many as asked for.

    Controls and line ends within an event are written out, also into a pipe; --raw leaves them as they are.
    What could not be had or read is told on standard error and makes the exit status 1. With --name an
    event counts as handled when it was printed; a later call with the same name goes on behind it.
    """
    from linnet.cli.printing import Printer
    from linnet.cli.running_node import control, stream_name

    full = stream_name(stream, home)
    begin = parse_since(since, wall_clock())
    with control(home) as node, control(home) as acknowledging:
        items = node.subscribe(
            full, begin, name, ordered=not unordered, receipts=receipts, manual=name is not None
        )
        printer = Printer(as_json, count, None if name is None else acknowledging, is_raw=raw)
        printer.run(items, timeout)
