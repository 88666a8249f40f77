"""``linnet stream allow``: let a device read a sealed stream."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from linnet.cli.options import HomeOption, JsonOption, StreamArgument, examples
from linnet.cli.output import counted, plain, say, say_json

EPILOG = examples(
    "linnet stream allow me/diary lr1…",
    "linnet stream allow me/diary lr1… --from-now",
    "pbpaste | linnet stream allow me/diary -",
)

Line = Annotated[
    str,
    typer.Argument(
        metavar="LINE", help="What linnet stream request printed there; - reads it from standard input."
    ),
]
FromNow = Annotated[
    bool, typer.Option("--from-now", help="It reads nothing that was said before: a new key is made first.")
]


def allow(
    stream: StreamArgument,
    line: Line,
    from_now: FromNow = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let the device read a sealed stream of yours that made this line.

    It reads what is said from now on, and what was said since the present key was made: a day at most, or
    nothing with --from-now. Make sure that the line comes from whom you mean.
    """
    from linnet.cli.running_node import control, stream_name
    from linnet.node.sealed_types import AllowRequest

    name = stream_name(stream, home)
    given = sys.stdin.read() if line == "-" else line
    with control(home) as node:
        reply = node.allow_reader(AllowRequest(name, given, from_now))
    if as_json:
        say_json(reply)
        return
    for reader in reply.changed:
        say(f"let in {plain(reader.label) or 'a device'} ({reader.device}) of {reader.person}")
    say(f"{counted(len(reply.readers), 'device')} may read {name}")
