"""The node machine that ships, over real links: what the small machines of the other tests stand for."""

from __future__ import annotations

import asyncio
from random import Random

from linnet.core.effects import Deliver
from linnet.core.ids import Contact
from linnet.event.event import Event
from linnet.machine.commands import Done
from linnet.net.clock import Clock
from linnet.net.config import NetConfig
from linnet.net.driver import Driver, default_transports
from linnet.net.transport import LOOPBACK, listen
from linnet.peer.config import PeerConfig
from linnet.peer.interface import Handed, Start, Stop
from linnet.peer.peer import Peer
from linnet.store.memory import MemoryStore
from linnet.streams.commands import Publish, Published, Subscribe, Subscribed
from linnet.testing.identities import known_identity
from linnet.trace.records import NullTrace

MESSAGES = 300


class Running:
    """A whole node with a memory store."""

    def __init__(self, name: str, trackers: tuple[Contact, ...] = (), is_tracker: bool = False) -> None:
        clock = Clock()
        identity = known_identity(name, clock.now())
        transports = default_transports(identity.device, NetConfig())
        listeners = listen(LOOPBACK, transports)
        hints = tuple(listener.hint for listener in listeners)
        self.contact = Contact(identity.peer, hints)
        config = PeerConfig(
            listens=hints, trackers=(self.contact,) if is_tracker else trackers, is_tracker=is_tracker
        )
        self.bodies: list[bytes] = []
        self.complete = asyncio.Event()
        store = MemoryStore()
        machine = Peer(config, identity, store, Random(name))
        self.driver = Driver(
            machine,
            identity.device,
            store,
            NullTrace(),
            transports,
            listeners,
            NetConfig(),
            self._deliver,
            clock,
        )

    def _deliver(self, delivery: Deliver[Handed]) -> None:
        self.bodies += [item.body for item in delivery.items if isinstance(item, Event)]
        if len(self.bodies) == MESSAGES:
            self.complete.set()


async def test_what_one_publishes_the_other_gets_in_order() -> None:
    tracker = Running("tracker", is_tracker=True)
    speaker = Running("speaker", (tracker.contact,))
    listener = Running("listener", (tracker.contact,))
    async with tracker.driver, speaker.driver, listener.driver, asyncio.timeout(30):
        for node in (tracker, speaker, listener):
            assert await node.driver.ask(Start()) == Done()
        assert isinstance(await listener.driver.ask(Subscribe(1, "news")), Subscribed)
        for number in range(0, MESSAGES, 50):
            bodies = tuple(f"line {number + place}".encode() for place in range(50))
            assert isinstance(await speaker.driver.ask(Publish("news", bodies)), Published)
        await listener.complete.wait()
        assert listener.bodies == [f"line {number}".encode() for number in range(MESSAGES)]
        for node in (listener, speaker, tracker):
            assert await node.driver.ask(Stop()) == Done()
