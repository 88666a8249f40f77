"""One sender and its receivers in processes of their own, through which messages are run."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from msgspec import Struct

from bench.crew import Crew, Worker
from bench.workers.bare_receiver import BareReceiverRole
from bench.workers.bare_sender import BareSenderRole
from bench.workers.publisher import PublisherRole
from bench.workers.subscriber import SubscriberRole
from bench.workers.talk import Arrived, Expect, Expecting, Go, Linked, Ready, Sent
from bench.workers.tracker import TrackerRole
from linnet.core.limits import BURST_EVENTS


class Layout(Struct, frozen=True):
    """Who is linked to whom."""

    name: str
    receivers: int
    sender_links: int
    receiver_links: int
    star: bool


ONE = Layout("1→1", 1, 1, 1, star=True)
EIGHT = Layout("1→8", 8, 8, 1, star=True)
FLOOD = Layout("flood of 9, d=4", 8, 4, 4, star=False)


class Outcome(Struct, frozen=True):
    """What one run came to."""

    deliveries_per_second: float
    sender_cpu_us: float
    """Processor time of the sending process for each message."""
    receiver_cpu_us: float
    """Processor time of a receiving process for each message, the mean of all."""
    p50_ms: float
    p99_ms: float


class Fleet:
    """A sender, its receivers, and the links between them."""

    def __init__(self, sender: Worker, receivers: list[Worker]) -> None:
        self.sender = sender
        self.receivers = receivers

    async def run(self, order: Go) -> Outcome:
        """Send, and wait until every receiver's application has had everything."""
        for receiver in self.receivers:
            receiver.order(Expect(order.messages, stamped=order.per_second > 0))
        for receiver in self.receivers:
            await receiver.hear(Expecting)
        self.sender.order(order)
        sent = await self.sender.hear(Sent)
        arrived = [await receiver.hear(Arrived) for receiver in self.receivers]
        seconds = (max(each.ended_ns for each in arrived) - sent.began_ns) / 1e9
        receiver_cpu = sum(each.cpu_seconds for each in arrived) / len(arrived)
        return Outcome(
            order.messages * len(arrived) / seconds,
            1e6 * sent.cpu_seconds / order.messages,
            1e6 * receiver_cpu / order.messages,
            max(each.p50_ns for each in arrived) / 1e6,
            max(each.p99_ns for each in arrived) / 1e6,
        )


@contextlib.asynccontextmanager
async def nodes(layout: Layout, stores: Path | None, burst: int = BURST_EVENTS) -> AsyncIterator[Fleet]:
    """Nodes of the library; each with a SQLite store below this directory, if one is given.

    `burst` is how many events the publisher signs together.
    """
    with tempfile.TemporaryDirectory(dir=stores) as below:
        homes = (str(Path(below) / f"node-{number}") if stores else "" for number in itertools.count())
        async with Crew() as crew:
            tracker = await crew.start("tracker", TrackerRole(layout.star))
            address = (await tracker.hear(Ready)).address
            # First, for the first that joins is the centre of a star.
            sender = await crew.start(
                "publisher", PublisherRole(address, next(homes), layout.sender_links, burst)
            )
            await sender.hear(Ready)
            roles = [
                SubscriberRole(address, next(homes), layout.receiver_links) for _ in range(layout.receivers)
            ]
            receivers = [await crew.start("subscriber", role) for role in roles]
            await asyncio.gather(*(receiver.hear(Ready) for receiver in receivers))
            for worker in (sender, *receivers):
                await worker.hear(Linked)
            yield Fleet(sender, receivers)


@contextlib.asynccontextmanager
async def bare(layout: Layout, payload_bytes: int) -> AsyncIterator[Fleet]:
    """Bare TLS links in the layout of a star."""
    async with Crew() as crew:
        sender = await crew.start("bare_sender", BareSenderRole(layout.receivers, payload_bytes))
        port = int((await sender.hear(Ready)).address)
        receivers = [
            await crew.start("bare_receiver", BareReceiverRole(port)) for _ in range(layout.receivers)
        ]
        await asyncio.gather(*(receiver.hear(Ready) for receiver in receivers))
        for worker in (sender, *receivers):
            await worker.hear(Linked)
        yield Fleet(sender, receivers)
