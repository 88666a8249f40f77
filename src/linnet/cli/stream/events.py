"""Commands about the events of a stream: publish, subscribe, read the history."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Protocol, cast

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.moments import parse_since, wall_clock
from linnet.cli.options import (
    CountOption,
    DurableOption,
    FromOption,
    LimitOption,
    LinesOption,
    Options,
    StreamArgument,
    TextArgument,
    TimeoutOption,
    with_examples,
)
from linnet.cli.output import counted, say, say_json
from linnet.cli.running_node import Session
from linnet.cli.status import alone_text, warn_of_clock
from linnet.core.limits import BODY_BYTES
from linnet.core.reasons import Reason
from linnet.delivery.receipts import Fate
from linnet.identity.text import device_text, event_text

if TYPE_CHECKING:
    from linnet.streams.commands import Published

BATCH_LINES = 256
"""Lines that are published together: one burst, one signature."""

CHUNK_BYTES = 64 * 1024
"""The most bytes read at once: the capacity of a pipe."""

Confirm = Annotated[
    float,
    typer.Option(
        "--confirm", metavar="SECONDS", min=0, max=3600, help="Wait so long for storage nodes to keep it."
    ),
]


@with_examples(
    'linnet publish weather "rain at six"',
    "linnet publish weather --confirm 5 rain",
    "journalctl -f -o cat | linnet publish me/log - --lines",
    "linnet publish pictures - < cat.png",
)
def publish(
    stream: StreamArgument,
    text: TextArgument = "-",
    lines: LinesOption = False,
    confirm: Confirm = 0.0,
    *,
    session: Session,
) -> None:
    """Publish a message, or all of standard input, and print the outcome.

    The message is durable at the node when this returns. The output says to how many neighbours it was sent,
    or why to none, as far as that is known. With --confirm, the exit status is 1 unless at least one storage
    node keeps all of it within that time; if no storage node is known, the command fails at once.
    """
    from linnet.streams.commands import Publish

    batches = read_batches(text, lines)
    name = session.stream_name(stream)
    outcome = Outcome(session.as_json)
    with session.open_node() as node:
        for bodies in batches:
            # One request at a time: while the node is congested, the pipe fills and its writer waits.
            outcome.add(node.ask(Publish(name, tuple(bodies), confirm)))
    outcome.end(confirm)


class Source(Protocol):
    """Bytes that arrive gradually."""

    def read1(self, size: int, /) -> bytes:
        """Read the available bytes, at least one; none at the end."""


_REFUSED = {
    Reason.QUOTA: " (its room for others is used up)",
    Reason.DISK_FULL: " (its disk is almost full)",
}
"""Why a storage node takes no newer events, in words."""


class Outcome:
    """Collects the outcome of everything that one call publishes."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._events = 0
        self._last: Published | None = None
        self._unconfirmed = 0

    def add(self, reply: Published) -> None:
        """Count a batch that the node has accepted."""
        self._events += len(reply.ids)
        self._last = reply
        if not any(each.storage and each.fate is Fate.DELIVERED for each in reply.fates):
            self._unconfirmed += len(reply.ids)
        if self._as_json:
            say_json(reply)

    def end(self, confirm: float) -> None:
        """Print the outcome of everything; raises `Failure` if a wanted confirmation is missing."""
        last = self._last
        if not self._as_json:
            self._tell(last)
        if last is not None and confirm and self._unconfirmed:
            known = sum(fate.storage for fate in last.fates)
            why = f"none of {known} has in {confirm:g} s" if known else "none is known"
            why += _REFUSED.get(last.unconfirmed, "") if last.unconfirmed is not None else ""
            raise Failure(
                f"no storage node confirmed {self._unconfirmed} of {counted(self._events, 'event')}: {why}; "
                "the events stay at this node and are handed on later; look at: linnet status"
            )

    def _tell(self, last: Published | None) -> None:
        if last is None:
            say("nothing to publish: standard input was empty")
            return
        numbers = f"{last.first + len(last.ids) - self._events}"
        if self._events == 1:
            say(f"published {event_text(last.ids[0])} as number {numbers}")
        else:
            say(f"published {self._events} events, numbers {numbers} to {last.first + len(last.ids) - 1}")
            say(f"last      {event_text(last.ids[-1])}")
        if last.neighbors:
            unknown = "" if last.fates else "; nobody confirms that it arrived"
            say(f"handed to {counted(last.neighbors, 'neighbour')}{unknown}")
        else:
            why = alone_text(last.unsent) or "it goes out when a neighbour appears"
            whom = "nobody else" if any(each.fate is Fate.DELIVERED for each in last.fates) else "nobody"
            say(f"sent to   {whom} yet: {why}")
        for each in last.fates:
            sort = "volunteer" if each.volunteer else "storage node" if each.storage else "reader"
            say(f"{each.fate:10}{sort} {device_text(each.receiver)}")


def read_batches(text: str, lines: bool) -> Iterator[list[bytes]]:
    """Return the bodies to publish in batches: a text, standard input (``-``), or each of its lines."""
    if lines and text != "-":
        raise Failure("--lines reads standard input: give - instead of a text", ExitCode.USAGE)
    return _read_batches(text, lines)


def _read_batches(text: str, lines: bool) -> Iterator[list[bytes]]:
    if text != "-":
        yield [text.encode("utf-8", "surrogateescape")]
    elif lines:
        # Standard input is buffered, though its declared type does not say so.
        yield from line_batches(cast(Source, sys.stdin.buffer))
    elif body := sys.stdin.buffer.read():
        yield [body]


def line_batches(source: Source) -> Iterator[list[bytes]]:
    """Yield lines in batches: those that are available, one burst at most, without waiting for more."""
    rest = b""
    while chunk := source.read1(CHUNK_BYTES):
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > BODY_BYTES:
            raise Failure(f"a line has more than {BODY_BYTES} bytes, which no message may have; split it")
        for begin in range(0, len(lines), BATCH_LINES):
            yield [line.removesuffix(b"\r") for line in lines[begin : begin + BATCH_LINES]]
    if rest:
        yield [rest]


Raw = Annotated[
    bool,
    typer.Option(
        "--raw", help="Print bodies as they are, also what a terminal would obey; else that is written out."
    ),
]


@dataclass(frozen=True)
class SubscriptionOptions(Options):
    """From when on a stream is read, for how long, and by which subscription."""

    since: FromOption = "now"
    count: CountOption = None
    name: DurableOption = None
    unordered: Annotated[
        bool, typer.Option("--unordered", help="Do not wait for gaps: print events as they come.")
    ] = False
    receipts: Annotated[
        bool, typer.Option("--receipts", help="Let publishers learn that it arrived here.")
    ] = False
    raw: Raw = False
    timeout: TimeoutOption = None


@with_examples(
    "linnet subscribe weather",
    "linnet subscribe weather --from beginning --count 10",
    "linnet subscribe me/log --name archiver >> log.txt",
    "linnet subscribe weather --from 15m --json | jq -r .text",
    "linnet subscribe pictures --count 1 --raw > cat.png",
)
def subscribe(stream: StreamArgument, options: SubscriptionOptions, session: Session) -> None:
    """Print the events of a stream, one per line, until Ctrl-C or until there are enough.

    Control characters and line ends within an event are escaped, also into a pipe; --raw prints events as
    they are. Events that were missed or cannot be read are reported on standard error, and make the exit
    status 1. With --name an event counts as handled when it is printed; a later call with the same name
    continues there. With --json an event has "doubtful": true if the time that its author claims cannot be
    right.
    """
    from linnet.cli.printers import EventPrinter
    from linnet.streams.commands import Subscribe

    full = session.stream_name(stream)
    begin = parse_since(options.since, wall_clock())
    is_durable = options.name is not None
    is_ordered = not options.unordered
    command = Subscribe(0, full, begin, options.name, ordered=is_ordered, receipts=options.receipts)
    with session.open_node() as node, session.open_node() as consumer:
        warn_of_clock(consumer)
        printer = EventPrinter(session.as_json, options.count, consumer if is_durable else None)
        printer.is_raw = options.raw
        printer.run(node.lines(command, manual=is_durable), options.timeout)


HistoryFrom = Annotated[
    str,
    typer.Option("--from", metavar="TIME", help="beginning, so long ago (15m, 2h, 7d), or 2026-11-15T09:30."),
]


@with_examples(
    "linnet history weather",
    "linnet history weather --from 2h --limit 100",
    "linnet history me/diary --json > diary.jsonl",
)
def history(
    stream: StreamArgument,
    since: HistoryFrom = "beginning",
    limit: LimitOption = None,
    raw: Raw = False,
    *,
    session: Session,
) -> None:
    """Print what this node and storage nodes keep of a stream, oldest first, then end.

    What this node keeps comes at once. Control characters and line ends within an event are escaped, also
    into a pipe; --raw prints events as they are. Standard error says where the history begins, whether older
    events were evicted, and whether only this node took part. Exits 1 if storage nodes are known and none of
    them answered; if none is known, the history is what this node keeps. With --json an event has
    "doubtful": true if the time that its author claims cannot be right.
    """
    from linnet.api.node_commands import ReadHistory
    from linnet.cli.printers import HistoryPrinter

    full = session.stream_name(stream)
    moment = wall_clock()
    begin = parse_since(since, moment)
    with session.open_node() as node:
        warn_of_clock(node)
        printer = HistoryPrinter(session.as_json, limit)
        printer.is_raw = raw
        printer.run(node.lines(ReadHistory(0, full, moment if begin is None else begin)))
