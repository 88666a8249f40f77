"""A worker that sends frames over bare TLS 1.3 to all who have dialled it: the ceiling of any sender."""

from __future__ import annotations

import asyncio
import secrets
import time

from msgspec import Struct

from bench.workers.talk import Go, Linked, Ready, Sent, orders, role, say
from linnet.identity.keys import SigningKey
from linnet.net.tls import server_context
from linnet.node.running import run
from linnet.wire.frame import frame

WRITES_PER_TURN = 256
"""Uncoalesced: messages after which the loop may do something else."""

_BUFFER_BYTES = 1 << 20


class BareSenderRole(Struct, frozen=True):
    """How many receivers to wait for, and how large messages are."""

    receivers: int
    payload_bytes: int


class Sending(asyncio.Protocol):
    """One receiver."""

    transport: asyncio.Transport

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self.free = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclasses of asyncio's, only alike.
        self.transport = transport  # type: ignore[assignment]
        self.transport.set_write_buffer_limits(_BUFFER_BYTES)
        self.free.set()
        self._sender.linked(self)

    def pause_writing(self) -> None:
        self.free.clear()

    def resume_writing(self) -> None:
        self.free.set()


class Sender:
    """All receivers."""

    def __init__(self, given: BareSenderRole) -> None:
        self._given = given
        self._links: list[Sending] = []
        self.complete = asyncio.Event()

    def linked(self, link: Sending) -> None:
        self._links.append(link)
        if len(self._links) == self._given.receivers:
            self.complete.set()

    async def send(self, order: Go) -> None:
        """Write messages to every link: each by itself, or as many as one order says joined."""
        payload = bytes(self._given.payload_bytes)
        for begun in range(0, order.messages, max(order.at_once, WRITES_PER_TURN)):
            end = min(order.messages, begun + max(order.at_once, WRITES_PER_TURN))
            for link in self._links:
                await link.free.wait()
            if order.at_once > 1:
                joined = b"".join([frame(payload) for _ in range(begun, end)])
                for link in self._links:
                    link.transport.write(joined)
            else:
                for _ in range(begun, end):
                    framed = frame(payload)
                    for link in self._links:
                        link.transport.write(framed)
            await asyncio.sleep(0)


async def main(given: BareSenderRole) -> None:
    sender = Sender(given)
    context = server_context(SigningKey.generate(secrets.token_bytes))
    server = await asyncio.get_running_loop().create_server(
        lambda: Sending(sender), "127.0.0.1", 0, ssl=context
    )
    say(Ready(str(server.sockets[0].getsockname()[1])))
    await sender.complete.wait()
    say(Linked())
    async for order in orders():
        if isinstance(order, Go):
            began_ns, cpu = time.monotonic_ns(), time.process_time()
            await sender.send(order)
            say(Sent(began_ns, time.process_time() - cpu))


if __name__ == "__main__":
    run(main(role(BareSenderRole)))
