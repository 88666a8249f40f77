"""``linnet publish``: say something in a stream."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Protocol, cast

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.options import HomeOption, JsonOption, StreamArgument, examples
from linnet.cli.output import counted, say, say_json
from linnet.core.limits import BODY_BYTES

if TYPE_CHECKING:
    from linnet.node.control_types import PublishReply

EPILOG = examples(
    'linnet publish weather "rain at six"',
    "linnet publish weather --confirm 5 rain",
    "journalctl -f -o cat | linnet publish me/log - --lines",
    "linnet publish pictures - < cat.png",
)

BATCH_LINES = 256
"""Lines that travel together: one burst, one signature."""

CHUNK_BYTES = 64 * 1024
"""Bytes that are read at once, if so many are there: what a pipe holds."""

Text = Annotated[str, typer.Argument(metavar="TEXT", help="What to say; - reads it from standard input.")]
Lines = Annotated[bool, typer.Option("--lines", help="Standard input holds one message per line.")]
Confirm = Annotated[
    float,
    typer.Option(
        "--confirm", metavar="SECONDS", min=0, max=3600, help="Wait so long for storage nodes to keep it."
    ),
]


def publish(
    stream: StreamArgument,
    text: Text = "-",
    lines: Lines = False,
    confirm: Confirm = 0.0,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Publish a message, or all of standard input, and tell what became of it.

    It is durable at the node when this returns, and sent to as many neighbours as it says. With
    --confirm, exits 1 unless at least one storage node keeps all of it.
    """
    from linnet.cli.running_node import control, stream_name

    if lines and text != "-":
        raise Failure("--lines reads standard input: give - instead of a text", ExitCode.USAGE)
    name = stream_name(stream, home)
    outcome = Outcome(as_json)
    with control(home) as node:
        for bodies in _batches(text, lines):
            # One request at a time: while the node holds us back, the pipe fills and its writer waits.
            outcome.add(node.publish(name, bodies, confirm))
    outcome.end(confirm)


class Source(Protocol):
    """Bytes that arrive little by little."""

    def read1(self, size: int, /) -> bytes:
        """What is there, at least a byte; nothing at the end."""


class Outcome:
    """What became of everything that one call published."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._events = 0
        self._last: PublishReply | None = None
        self._unconfirmed = 0

    def add(self, reply: PublishReply) -> None:
        """The next batch is out."""
        self._events += len(reply.ids)
        self._last = reply
        if not any(fate.storage and fate.delivered_at is not None for fate in reply.fates):
            self._unconfirmed += len(reply.ids)
        if self._as_json:
            say_json(reply)

    def end(self, confirm: float) -> None:
        """Everything is out: tell, and fail if nobody keeps what somebody should."""
        last = self._last
        if not self._as_json:
            self._tell(last)
        if last is not None and confirm and self._unconfirmed:
            known = sum(fate.storage for fate in last.fates)
            why = (
                f"{counted(known, 'storage node')} known, none has said so yet" if known else "none is known"
            )
            raise Failure(
                f"no storage node confirmed {self._unconfirmed} of {counted(self._events, 'event')} "
                f"in {confirm:g} s: {why}; the events stay at this node and are handed on later; "
                "look at: linnet status"
            )

    def _tell(self, last: PublishReply | None) -> None:
        if last is None:
            say("nothing to publish: standard input was empty")
            return
        numbers = f"{last.first + len(last.ids) - self._events}"
        if self._events == 1:
            say(f"published {last.ids[0]} as number {numbers}")
        else:
            say(f"published {self._events} events, numbers {numbers} to {last.first + len(last.ids) - 1}")
            say(f"last      {last.ids[-1]}")
        if last.neighbors:
            say(f"sent to   {counted(last.neighbors, 'neighbour')}")
        else:
            say("sent to   nobody yet: it goes out when a neighbour appears")
        for fate in last.fates:
            sort = "storage node" if fate.storage else "reader"
            state = "delivered" if fate.delivered_at is not None else "pending"
            say(f"{state:10}{sort} {fate.receiver}")


def _batches(text: str, lines: bool) -> Iterator[list[bytes]]:
    if text != "-":
        yield [text.encode("utf-8", "surrogateescape")]
    elif lines:
        # Standard input is buffered, which its declared type does not say.
        yield from line_batches(cast(Source, sys.stdin.buffer))
    elif body := sys.stdin.buffer.read():
        yield [body]


def line_batches(source: Source) -> Iterator[list[bytes]]:
    """Lines in batches: whatever is there already, one burst at most. Nothing waits for company."""
    rest = b""
    while chunk := source.read1(CHUNK_BYTES):
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > BODY_BYTES:
            raise Failure(f"a line has more than {BODY_BYTES} bytes, which no message may have; split it")
        for begin in range(0, len(lines), BATCH_LINES):
            yield [line.removesuffix(b"\r") for line in lines[begin : begin + BATCH_LINES]]
    if rest:
        yield [rest]
