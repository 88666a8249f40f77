"""A worker that hosts a place and announces as fast as it goes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

from msgspec import Struct

from bench.workers.place_nodes import METHOD, PlaceNode
from bench.workers.talk import Go, Linked, Ready, Sent, orders, role, say
from linnet.core.ids import TopicId
from linnet.node.running import run
from linnet.places.commands import Announce, Announced, HostPlace, PlaceIs
from linnet.places.deed import Policy


class PlaceHostRole(Struct, frozen=True):
    """How large bodies are."""

    body_bytes: int


async def announce_all(node: PlaceNode, place: TopicId, body: bytes, order: Go) -> None:
    """Announce so many messages, some of them under way at once."""

    async def caller(turns: Iterator[int]) -> None:
        for _ in turns:
            await node.get(Announce(place, METHOD, body=body), Announced)

    turns = iter(range(order.messages))
    async with asyncio.TaskGroup() as group:
        for _ in range(order.at_once):
            group.create_task(caller(turns))


async def main(given: PlaceHostRole) -> None:
    async with PlaceNode() as node:
        place = (await node.get(HostPlace(policy=Policy.PUBLIC), PlaceIs)).deed.place
        await node.get(Announce(place, "_notice_place_open"), Announced)
        say(Ready(f"{place.hex()} {node.address}"))
        say(Linked())
        body = bytes(given.body_bytes)
        async for order in orders():
            if isinstance(order, Go):
                began_ns, cpu = time.monotonic_ns(), time.process_time()
                await announce_all(node, place, body, order)
                say(Sent(began_ns, time.process_time() - cpu))


if __name__ == "__main__":
    run(main(role(PlaceHostRole)))
