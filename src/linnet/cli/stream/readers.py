"""``linnet stream readers``: who may read a sealed stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linnet.cli.options import HomeOption, JsonOption, StreamArgument, examples
from linnet.cli.output import plain, say, say_json, say_table

if TYPE_CHECKING:
    from linnet.node.sealed_types import ReadersReply

EPILOG = examples(
    "linnet stream readers me/diary", "linnet stream readers me/diary --json | jq '.readers[].label'"
)

COLUMNS = ("name", "device", "let in", "from key ", "person")


def readers(stream: StreamArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """List the devices that may read a stream which this device seals."""
    from linnet.cli.running_node import control, stream_name

    name = stream_name(stream, home)
    with control(home) as node:
        reply = node.stream_readers(name)
    if as_json:
        say_json(reply)
        return
    say(heading(reply))
    if reply.readers:
        say("")
        say_table(COLUMNS, rows(reply))


def heading(reply: ReadersReply) -> str:
    """How the stream stands, in a line."""
    from linnet.cli.moments import clock_text

    if reply.since is None:
        return f"{reply.stream} is sealed; nothing was said and nobody let in yet"
    return f"{reply.stream} is sealed; its key is number {reply.epoch}, made {clock_text(reply.since)}"


def rows(reply: ReadersReply) -> list[tuple[object, ...]]:
    """The readers in a table."""
    from linnet.cli.moments import clock_text

    return [
        (plain(reader.label) or None, reader.device, clock_text(reader.at), reader.epoch, reader.person)
        for reader in reply.readers
    ]
