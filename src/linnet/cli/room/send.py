"""``linnet room send``: say something in a room."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, cast

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import say, say_json
from linnet.cli.room.options import RoomArgument

if TYPE_CHECKING:
    from linnet.cli.publish import Source
    from linnet.node.room_types import SentReply

EPILOG = examples(
    'linnet room send tea "Did it arrive?"',
    "linnet room send tea --deadline 60 hello",
    "tail -f log | linnet room send ops - --lines",
)

Text = Annotated[str, typer.Argument(metavar="TEXT", help="What to say; - reads it from standard input.")]
Lines = Annotated[bool, typer.Option("--lines", help="Standard input holds one message per line.")]
Deadline = Annotated[
    float | None,
    typer.Option(
        "--deadline",
        metavar="SECONDS",
        min=0.001,
        help="Tell whoever reads the room here at whom it has not arrived by then.",
    ),
]


def send(
    room: RoomArgument,
    text: Text = "-",
    lines: Lines = False,
    deadline: Deadline = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say something in a room: a text, or all of standard input.

    It is durable at the node when this returns. To whom it arrives is told by: linnet room ledger
    """
    from linnet.cli.room.finding import find_room
    from linnet.cli.running_node import control

    if lines and text != "-":
        raise Failure("--lines reads standard input: give - instead of a text", ExitCode.USAGE)
    said = 0
    reply: SentReply | None = None
    with control(home) as node:
        found = find_room(node, room).room
        for bodies in _batches(text, lines):
            reply = node.send_to_room(found, bodies, deadline=deadline)
            said += len(reply.ids)
            if as_json:
                say_json(reply)
    if not as_json:
        _tell(reply, said)


def _tell(reply: SentReply | None, said: int) -> None:
    from linnet.cli.room.outcome import went_to

    if reply is None:
        say("nothing to send: standard input was empty")
        return
    say(f"event   {reply.ids[-1]}" if said == 1 else f"events  {said}, the last is {reply.ids[-1]}")
    say(f"sent to {went_to(reply)}")


def _batches(text: str, lines: bool) -> Iterator[list[bytes]]:
    from linnet.cli.publish import line_batches

    if text != "-":
        yield [text.encode("utf-8", "surrogateescape")]
    elif lines:
        # Standard input is buffered, which its declared type does not say.
        yield from line_batches(cast("Source", sys.stdin.buffer))
    elif body := sys.stdin.buffer.read():
        yield [body]
