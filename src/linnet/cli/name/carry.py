"""``linnet name export`` and ``import``: records as a file, where no node can carry them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import counted, say, say_json, warn

EXPORT_EPILOG = examples("linnet name export alice.names")
IMPORT_EPILOG = examples("linnet name import alice.names")

File = Annotated[Path, typer.Argument(metavar="FILE", help="The file.")]


def export(file: File, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Write your own records into a file that others can keep; who does not know a name reads nothing."""
    from linnet.cli.exits import ExitCode, Failure
    from linnet.cli.running_node import control

    with control(home) as node:
        reply = node.export_names()
    try:
        with file.open("xb") as out:
            out.write(reply.data)
    except OSError as error:
        raise Failure(f"{file}: cannot be written: {error.strerror}", ExitCode.USAGE) from error
    if as_json:
        say_json({"records": reply.records, "file": str(file)})
    else:
        say(f"wrote {counted(reply.records, 'record')} to {file}")


def import_(file: File, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Keep the records of a file: from now on this node finds them, and hands them out as any others."""
    from linnet.cli.exits import ExitCode, Failure
    from linnet.cli.running_node import control

    try:
        data = file.read_bytes()
    except OSError as error:
        raise Failure(f"{file}: cannot be read: {error.strerror}", ExitCode.USAGE) from error
    with control(home) as node:
        reply = node.take_in_names(data)
    if as_json:
        say_json(reply)
        return
    say(f"keep {counted(reply.kept, 'record')} of {file}")
    for reason in dict.fromkeys(reply.refused):
        warn(f"{counted(reply.refused.count(reason), 'record')} not kept: {reason}")
