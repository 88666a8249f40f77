"""One process of the demo: a node in its home, which reads a stream durably and may publish to it.

``python -m linnet.cli.demo.member HOME [STREAM]``. Commands come on standard input, one JSON value per line;
its end stops the node, so that nothing outlives the demo. Received events are written to ``received.jsonl``
in the home before they count as handled: kill -9 loses no handled event.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec import Struct

from linnet.cli.moments import wall_clock
from linnet.delivery.items import Item, Missed
from linnet.event.event import Event
from linnet.identity.text import Sort, to_text
from linnet.node.background import Background
from linnet.node.library import Node
from linnet.node.running import run


class Begin(Struct, frozen=True):
    """To a process: publish this many events, evenly over this many seconds."""

    messages: int
    seconds: float


class Ready(Struct, frozen=True, tag="ready"):
    """From a process: its node is running."""

    address: str
    device: str


class State(Struct, frozen=True, tag="state"):
    """From a process, a few times a second: its progress."""

    received: int
    published: int
    neighbors: int
    tracker: str | None
    """The device id of the tracker that it follows."""


class Resumed(Struct, frozen=True, tag="resumed"):
    """From a process: its durable subscription is open, and whether it existed before."""

    resumed: bool


Report: TypeAlias = Ready | State | Resumed


class Body(Struct, frozen=True):
    """The body of a message of the demo."""

    number: int
    at: float
    """When it was given to the node, Unix time."""


class PublishedLine(Struct, frozen=True):
    """A line of ``published.jsonl``: an event that the node accepted."""

    id: str


class ReceivedLine(Struct, frozen=True, omit_defaults=True):
    """A line of ``received.jsonl``: an item of the subscription, in order."""

    id: str = ""
    at: float = 0.0
    """When it was published."""
    got: float = 0.0
    """When it was handed over."""
    missed: int = 0
    """Or: this many events could not be provided."""


RECEIVED = "received.jsonl"
PUBLISHED = "published.jsonl"

SUBSCRIPTION = "demo"
"""The name of the durable subscription."""

_STATE_PERIOD = 0.25
_ITEMS = 256
_encode = msgspec.json.Encoder().encode


class Member:
    """The node of one process, and its progress."""

    def __init__(self, node: Node, home: Path, stream: str | None) -> None:
        self._node = node
        self._stream = stream
        self._home = home
        self._received: set[str] = _ids(home / RECEIVED)
        """The ids of received events, including those of earlier runs."""
        self._published = 0

    async def run(self) -> None:
        """Carry out commands until standard input ends."""
        async with Background() as background:
            if self._stream is not None:
                background.spawn(self._subscribe(self._stream), "subscribe")
            background.spawn(self._tell(), "tell")
            async for line in _input_lines():
                begin = msgspec.json.decode(line, type=Begin)
                if self._stream is not None:
                    background.spawn(self._publish(self._stream, begin), "publish")

    async def _subscribe(self, stream: str) -> None:
        with _appended(self._home / RECEIVED) as file:
            async with self._node.subscribe(stream, since=0.0, name=SUBSCRIPTION) as subscription:
                report(Resumed(subscription.resumed))
                while True:
                    items = await subscription.take(_ITEMS)
                    now = wall_clock()
                    os.write(file, b"".join(_line(item, now) for item in items))
                    subscription.handled(len(items))
                    self._received.update(item.id.hex() for item in items if isinstance(item, Event))

    async def _publish(self, stream: str, begin: Begin) -> None:
        """Publish evenly over the time; overdue events, because publishing took long, go as a burst."""
        clock = asyncio.get_running_loop().time
        began = clock()
        with _appended(self._home / PUBLISHED) as file:
            while self._published < begin.messages:
                due = min(begin.messages, int((clock() - began) / begin.seconds * begin.messages) + 1)
                if due == self._published:
                    await asyncio.sleep(began + due / begin.messages * begin.seconds - clock())
                    continue
                at = wall_clock()
                bodies = [_encode(Body(number, at)) for number in range(self._published, due)]
                published = await self._node.publish(stream, bodies)
                os.write(file, b"".join(_encode(PublishedLine(id.hex())) + b"\n" for id in published.ids))
                self._published = due

    async def _tell(self) -> None:
        while True:
            status = await self._node.status()
            joined = next((each for each in status.streams if each.stream == self._stream), None)
            tracker = None if joined is None or joined.tracker is None else joined.tracker
            report(
                State(
                    len(self._received),
                    self._published,
                    0 if joined is None else len(joined.neighbors),
                    None if tracker is None else to_text(Sort.DEVICE, tracker),
                )
            )
            await asyncio.sleep(_STATE_PERIOD)


def report(what: Report) -> None:
    """Send a report to the demo."""
    with contextlib.suppress(BrokenPipeError):  # It is gone; the end of standard input says so too.
        os.write(sys.stdout.fileno(), _encode(what) + b"\n")


def _line(item: Item, now: float) -> bytes:
    match item:
        case Event():
            at = msgspec.json.decode(item.body, type=Body).at
            return _encode(ReceivedLine(item.id.hex(), at, now)) + b"\n"
        case Missed(first=first, last=last):
            return _encode(ReceivedLine(missed=last - first + 1)) + b"\n"
        case _:
            return b""


async def _input_lines() -> AsyncIterator[bytes]:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    try:
        async for line in reader:
            yield line
    finally:
        transport.close()


def _ids(path: Path) -> set[str]:
    if not path.exists():
        return set()
    lines = path.read_bytes().splitlines()
    return {received.id for received in (msgspec.json.decode(line, type=ReceivedLine) for line in lines)} - {
        ""
    }


@contextlib.contextmanager
def _appended(path: Path) -> Iterator[int]:
    """Open a file for appending, without a buffer of our own: what was written survives a kill."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        yield file
    finally:
        os.close(file)


async def main(home: Path, stream: str | None) -> None:
    """Run one process of the demo."""
    async with Node(home) as node:
        report(Ready(node.address, to_text(Sort.DEVICE, node.peer)))
        await Member(node, home, stream).run()


if __name__ == "__main__":
    # Ctrl-C reaches every process of a terminal; only the demo acts on it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    run(main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None))
