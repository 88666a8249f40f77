"""A worker that publishes through the library, as fast as it goes or at a pace."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

from msgspec import Struct

from bench.workers.nodes import BODY_BYTES, STAMP_BYTES, STREAM, linked, member
from bench.workers.talk import Go, Linked, Ready, Sent, orders, role, say
from linnet.node.library import Node
from linnet.node.running import run

IN_FLIGHT = 4
"""Calls that wait for their outcome at once: signing goes on while a commit is under way."""

_BODY = bytes(BODY_BYTES)
_PADDING = bytes(BODY_BYTES - STAMP_BYTES)


class PublisherRole(Struct, frozen=True):
    """Whom to follow, where to store, and how many neighbours to wait for."""

    tracker: str
    home: str
    neighbors: int
    burst: int
    """Events that one signature covers at most."""


def stamped() -> bytes:
    """A message that tells when it was made."""
    return time.monotonic_ns().to_bytes(STAMP_BYTES, "big") + _PADDING


async def publish_all(node: Node, order: Go) -> None:
    """Publish as fast as it goes."""

    bodies = [_BODY] * order.at_once

    async def caller(turns: Iterator[int]) -> None:
        for _ in turns:
            await node.publish(STREAM, bodies)

    turns = iter(range(order.messages // order.at_once))
    async with asyncio.TaskGroup() as group:
        for _ in range(IN_FLIGHT):
            group.create_task(caller(turns))


async def publish_paced(node: Node, order: Go) -> None:
    """Publish so many a second, each in its own call, whatever becomes of those before."""

    async def one() -> None:
        await node.publish(STREAM, stamped())

    clock = asyncio.get_running_loop().time
    began = clock()
    async with asyncio.TaskGroup() as group:
        for number in range(order.messages):
            wait = began + number / order.per_second - clock()
            if wait > 0:
                await asyncio.sleep(wait)
            group.create_task(one())
            await asyncio.sleep(0)  # Two that are due at once are two all the same.


async def main(given: PublisherRole) -> None:
    async with member(given.tracker, given.home, given.burst) as node:
        # A subscription joins the stream; a publish would, too, but would be one to count.
        async with node.subscribe(STREAM):
            say(Ready(node.address))
            await linked(node, given.neighbors)
        say(Linked())
        async for order in orders():
            if isinstance(order, Go):
                began_ns, cpu = time.monotonic_ns(), time.process_time()
                await (publish_paced if order.per_second else publish_all)(node, order)
                say(Sent(began_ns, time.process_time() - cpu))


if __name__ == "__main__":
    run(main(role(PublisherRole)))
