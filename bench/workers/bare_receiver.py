"""A worker that takes frames from bare TLS 1.3 and hashes each: the least that any receiver does."""

from __future__ import annotations

import asyncio
import hashlib
import time

from msgspec import Struct

from bench.workers.talk import Arrived, Expect, Expecting, Linked, Ready, orders, role, say
from linnet.net.tls import client_context
from linnet.node.running import run
from linnet.wire.frame import FrameReader


class BareReceiverRole(Struct, frozen=True):
    """Where the sender listens on this machine, and how many links there are to it."""

    port: int
    links: int = 1


class Receiving(asyncio.Protocol):
    """One link."""

    def __init__(self) -> None:
        self._reader = FrameReader()
        self._left = 0
        self._arrived = asyncio.Event()
        self._ended_ns = 0

    def data_received(self, data: bytes) -> None:
        frames = self._reader.feed(data)
        for payload in frames:
            hashlib.sha256(payload).digest()
        self._left -= len(frames)
        if self._left == 0:
            self._ended_ns = time.monotonic_ns()
            self._arrived.set()

    def expect(self, messages: int) -> None:
        """So many will come."""
        self._left = messages
        self._arrived.clear()

    async def ended_ns(self) -> int:
        """When the last of them has come."""
        await self._arrived.wait()
        return self._ended_ns


async def receive(links: list[Receiving], messages: int) -> Arrived:
    """Wait for so many messages on every link."""
    for link in links:
        link.expect(messages)
    say(Expecting())
    cpu = time.process_time()
    ended = [await link.ended_ns() for link in links]
    return Arrived(max(ended), time.process_time() - cpu)


async def main(given: BareReceiverRole) -> None:
    links = [Receiving() for _ in range(given.links)]
    for link in links:
        await asyncio.get_running_loop().create_connection(
            lambda link=link: link,  # type: ignore[misc]
            "127.0.0.1",
            given.port,
            ssl=client_context(),
        )
    say(Ready(""))
    say(Linked())
    async for order in orders():
        if isinstance(order, Expect):
            say(await receive(links, order.messages))


if __name__ == "__main__":
    run(main(role(BareReceiverRole)))
