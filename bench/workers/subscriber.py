"""A worker that reads the stream through the library, event by event, as an application would."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

from msgspec import Struct

from bench.results import percentile
from bench.workers.nodes import STAMP_BYTES, STREAM, linked, member
from bench.workers.talk import Arrived, Expect, Expecting, Linked, Ready, orders, role, say
from linnet.event.event import Event
from linnet.node.running import run


class SubscriberRole(Struct, frozen=True):
    """Whom to follow, where to store, and how many neighbours to wait for."""

    tracker: str
    home: str
    neighbors: int


async def count(events: AsyncIterator[Event], messages: int) -> Arrived:
    """Read so many events."""
    cpu = time.process_time()
    async for _ in events:
        messages -= 1
        if not messages:
            break
    return Arrived(time.monotonic_ns(), time.process_time() - cpu)


async def receive_stamped(events: AsyncIterator[Event], messages: int) -> Arrived:
    """Read so many events, each with the time that it took."""
    ages: list[int] = []
    clock = time.monotonic_ns
    cpu = time.process_time()
    async for event in events:
        ages.append(clock() - int.from_bytes(event.body[:STAMP_BYTES], "big"))
        if len(ages) == messages:
            break
    ended = clock()
    return Arrived(ended, time.process_time() - cpu, percentile(ages, 0.5), percentile(ages, 0.99))


async def main(given: SubscriberRole) -> None:
    async with (
        member(given.tracker, given.home) as node,
        node.subscribe(STREAM, name="bench" if given.home else None) as subscription,
    ):
        say(Ready(node.address))
        await linked(node, given.neighbors)
        say(Linked())
        events = aiter(subscription)
        async for order in orders():
            if isinstance(order, Expect):
                say(Expecting())
                say(await (receive_stamped if order.stamped else count)(events, order.messages))


if __name__ == "__main__":
    run(main(role(SubscriberRole)))
