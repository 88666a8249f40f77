"""``linnet history``: what is kept of a stream."""

from __future__ import annotations

from typing import Annotated

import typer

from linnet.cli.moments import parse_since, wall_clock
from linnet.cli.options import HomeOption, JsonOption, StreamArgument, examples

EPILOG = examples(
    "linnet history weather",
    "linnet history weather --from 2h --limit 100",
    "linnet history me/diary --json > diary.jsonl",
)

From = Annotated[
    str,
    typer.Option("--from", metavar="TIME", help="beginning, so long ago (15m, 2h, 7d), or 2026-11-15T09:30."),
]
Limit = Annotated[int | None, typer.Option("--limit", metavar="N", min=1, help="At most N events.")]
Raw = Annotated[
    bool,
    typer.Option(
        "--raw", help="Print bodies as they are, also what a terminal would obey; else that is written out."
    ),
]


def history(
    stream: StreamArgument,
    since: From = "beginning",
    limit: Limit = None,
    raw: Raw = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print what this node and storage nodes keep of a stream, oldest first, then end.

    What this node has comes at once. Controls and line ends within an event are written out, also into a
    pipe; --raw leaves them as they are. Standard error says where the history begins, whether older
    events were evicted, and whether it is this node's alone. Exits 1 if storage nodes are known
    and none of them answered; if none is known, what this node keeps is all there is.
    """
    from linnet.cli.printing import Printer
    from linnet.cli.running_node import control, stream_name

    full = stream_name(stream, home)
    moment = wall_clock()
    begin = parse_since(since, moment)
    with control(home) as node:
        Printer(as_json, limit, None, is_history=True, is_raw=raw).run(
            node.history(full, moment if begin is None else begin), None
        )
