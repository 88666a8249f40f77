"""What a measurement and its worker processes say to each other: JSON values, one per line.

A worker gets its role as its argument and orders on standard input, whose end stops it: nothing
outlives the measurement, however that ends.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from typing import TypeVar

import msgspec
from msgspec import Struct

T = TypeVar("T")


class Expect(Struct, frozen=True, tag="expect"):
    """To a receiver: report when so many messages have come."""

    messages: int
    stamped: bool = False
    """Whether they tell when they were made, and their age is wanted."""


class Go(Struct, frozen=True, tag="go"):
    """To a sender: send so many messages."""

    messages: int
    at_once: int
    """Messages of one call, or of one write."""
    per_second: float = 0.0
    """The pace, with a stamp in each message; 0: as fast as it goes, without."""


Order = Expect | Go


class Ready(Struct, frozen=True, tag="ready"):
    """Where the worker can be reached."""

    address: str


class Linked(Struct, frozen=True, tag="linked"):
    """The worker has all the links that it should have."""


class Expecting(Struct, frozen=True, tag="expecting"):
    """The receiver counts from now on."""


class Sent(Struct, frozen=True, tag="sent"):
    """Everything was handed to the links, and is durable if there is a store."""

    began_ns: int
    """When the first was sent, by the clock that all processes of a machine share."""
    cpu_seconds: float


class Arrived(Struct, frozen=True, tag="arrived"):
    """All that was expected has come."""

    ended_ns: int
    cpu_seconds: float
    p50_ns: float = 0.0
    """Age of the messages, if they were stamped."""
    p99_ns: float = 0.0


class Simulated(Struct, frozen=True, tag="simulated"):
    """A simulation has run."""

    received: int
    """Messages that machines were handed while events were published."""
    wall_seconds: float
    cpu_seconds: float


class Weighed(Struct, frozen=True, tag="weighed"):
    """Memory of a simulation, in bytes."""

    empty: int
    idle: int
    """With all nodes joined."""
    after: int
    """After events were published and delivered."""


Report = Ready | Linked | Expecting | Sent | Arrived | Simulated | Weighed
_ORDERS: msgspec.json.Decoder[Order] = msgspec.json.Decoder(Order)


def role(sort: type[T]) -> T:
    """What this worker was told to be."""
    return msgspec.json.decode(sys.argv[1], type=sort)


def say(report: Report) -> None:
    """Tell the measurement."""
    os.write(sys.stdout.fileno(), msgspec.json.encode(report) + b"\n")


async def orders() -> AsyncIterator[Order]:
    """What the measurement wants, until it is gone."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async for line in reader:
        yield _ORDERS.decode(line)
