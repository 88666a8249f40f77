"""A host and its guests in processes, and bare TLS links in the same layout."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from bench.crew import Crew
from bench.fleet import Fleet
from bench.workers.bare_receiver import BareReceiverRole
from bench.workers.bare_sender import BareSenderRole
from bench.workers.place_guests import PlaceGuestsRole
from bench.workers.place_host import PlaceHostRole
from bench.workers.talk import Linked, Ready

PROCESSES = 2
"""Processes that many guests are spread over: each guest is a node with links of its own."""
_PATIENCE = 300.0
"""Seconds for fifty guests to enter, one after the other."""


def spread(guests: int) -> list[int]:
    """How many guests each process has."""
    processes = min(guests, PROCESSES)
    return [guests // processes + (at < guests % processes) for at in range(processes)]


@contextlib.asynccontextmanager
async def place(guests: int, body_bytes: int) -> AsyncIterator[Fleet]:
    """A public place with so many guests."""
    async with Crew() as crew:
        host = await crew.start("place_host", PlaceHostRole(body_bytes))
        topic, address = (await host.hear(Ready)).address.split()
        await host.hear(Linked)
        workers = []
        for count in spread(guests):
            worker = await crew.start("place_guests", PlaceGuestsRole(topic, address, count, body_bytes))
            await worker.hear(Ready, _PATIENCE)
            await worker.hear(Linked, _PATIENCE)
            workers.append(worker)
        yield Fleet(host, workers)


@contextlib.asynccontextmanager
async def bare_star(guests: int, payload_bytes: int) -> AsyncIterator[Fleet]:
    """Bare TLS from one sender to as many links, spread over as many processes."""
    async with Crew() as crew:
        sender = await crew.start("bare_sender", BareSenderRole(guests, payload_bytes))
        port = int((await sender.hear(Ready)).address)
        receivers = [
            await crew.start("bare_receiver", BareReceiverRole(port, count)) for count in spread(guests)
        ]
        for receiver in receivers:
            await receiver.hear(Ready, _PATIENCE)
            await receiver.hear(Linked, _PATIENCE)
        await sender.hear(Linked)
        yield Fleet(sender, receivers)
