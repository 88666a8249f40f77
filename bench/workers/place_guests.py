"""A worker with guests of a place: nodes of their own, each with its own links, in one process."""

from __future__ import annotations

import asyncio
import contextlib
import time

from msgspec import Struct

from bench.workers.place_nodes import PlaceNode
from bench.workers.talk import Arrived, Expect, Expecting, Linked, Ready, orders, role, say
from linnet.core.ids import TopicId
from linnet.identity.addresses import parse_contact
from linnet.node.running import run
from linnet.places.commands import Entered, EnterPlace

_PATIENCE = 120.0


class PlaceGuestsRole(Struct, frozen=True):
    """Where to enter, how many, and how large bodies will be."""

    place: str
    host: str
    guests: int
    body_bytes: int


class Counting:
    """Bytes that each guest still has to hear."""

    def __init__(self, guests: int) -> None:
        self._left = [0] * guests
        self._open = 0
        self._ended_ns = 0
        self._arrived = asyncio.Event()

    def heard(self, guest: int, size: int) -> None:
        """A guest was handed so many bytes of bodies."""
        if not size or self._left[guest] <= 0:
            return
        self._left[guest] -= size
        if self._left[guest] <= 0:
            self._open -= 1
            if not self._open:
                self._ended_ns = time.monotonic_ns()
                self._arrived.set()

    async def all_of(self, size: int) -> Arrived:
        """Wait until every guest has heard so many bytes."""
        self._left = [size] * len(self._left)
        self._open = len(self._left)
        self._arrived.clear()
        say(Expecting())
        cpu = time.process_time()
        await self._arrived.wait()
        return Arrived(self._ended_ns, time.process_time() - cpu)


async def main(given: PlaceGuestsRole) -> None:
    place, counting = TopicId(bytes.fromhex(given.place)), Counting(given.guests)
    async with contextlib.AsyncExitStack() as stack:
        say(Ready(""))
        for number in range(given.guests):
            node = await stack.enter_async_context(PlaceNode())
            contacts = (parse_contact(given.host),)
            await node.get(EnterPlace(place, contacts, patience=_PATIENCE), Entered)
            await node.watch(place, lambda size, guest=number: counting.heard(guest, size))  # type: ignore[misc]
        say(Linked())
        async for order in orders():
            if isinstance(order, Expect):
                say(await counting.all_of(order.messages * given.body_bytes))


if __name__ == "__main__":
    run(main(role(PlaceGuestsRole)))
