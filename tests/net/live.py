"""Nodes on real links, pipes of this process if no others are asked for, with a machine held by hand."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self, TypeVar

from tests.machines import HELLO

from linnet.core.effects import Deliver, Dial
from linnet.core.hello import Hello
from linnet.core.ids import PeerId
from linnet.core.inputs import LinkUp, Received, TimerFired
from linnet.core.messages import Message
from linnet.core.timers import Timer
from linnet.identity.keys import SigningKey
from linnet.machine.protocol import Vocabulary
from linnet.net.clock import Clock
from linnet.net.config import LanConfig, NetConfig
from linnet.net.driver import Driver, default_transports
from linnet.net.transport import Transport, TransportListener, listen
from linnet.peer.interface import Effect, Handed, Input
from linnet.peer.messages import STANDARD
from linnet.store.base import CommittingStore
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record

LIMIT = 10.0
"""Seconds after which what a test waits for will not come."""

PIPES = ("pipe://localhost:0",)
"""Where a node listens if TLS is not the subject."""

TLS = ("tls://127.0.0.1:0",)
"""Where a node listens if it is."""

E = TypeVar("E")


class _ActDue(Timer, frozen=True):
    """What a test has to say is to be said."""


_ACT = _ActDue()


def named_key(name: str) -> SigningKey:
    """A device key that is the same in every run."""
    return SigningKey(hashlib.sha256(name.encode()).digest())


def ordered_keys(count: int) -> list[SigningKey]:
    """Keys from the smallest to the largest."""
    return sorted((named_key(f"ordered {number}") for number in range(count)), key=lambda key: key.public)


class HandHeld:
    """A machine that does what the test says, and remembers what happened."""

    def __init__(self, script: Callable[[Input], list[Effect]] | None = None, hello: Hello = HELLO) -> None:
        self.hello = hello
        self.inputs: list[Input] = []
        self.todo: list[Effect] = []
        self.happened = asyncio.Event()
        self._script = script

    def handle(self, event: Input, now: float) -> list[Effect]:
        """See `NodeMachine.handle`."""
        if event == TimerFired(_ACT):
            effects, self.todo = self.todo, []
            return effects
        self.inputs.append(event)
        self.happened.set()
        return [] if self._script is None else self._script(event)


class LiveNode:
    """A driver with a `HandHeld` machine; an asynchronous context."""

    def __init__(
        self,
        key: SigningKey,
        addresses: Sequence[str] = PIPES,
        config: NetConfig | None = None,
        machine: HandHeld | None = None,
        store: CommittingStore | None = None,
        clock: Clock | None = None,
        vocabulary: Vocabulary = STANDARD,
        lan: LanConfig | None = None,
        transports: Sequence[Transport] | None = None,
    ) -> None:
        config = config or NetConfig()
        transports = transports or default_transports(key, config)
        self.key = key
        self.peer = PeerId(key.public)
        self.machine = machine or HandHeld()
        self.records: list[Record] = []
        self.delivered: list[Deliver[Handed]] = []
        self.listeners: list[TransportListener] = listen(addresses, transports)
        self.hints = tuple(listener.hint for listener in self.listeners)
        self.driver = Driver(
            self.machine,
            key,
            store or MemoryStore(),
            self,
            transports,
            self.listeners,
            config,
            self._deliver,
            clock or Clock(),
            vocabulary,
            lan,
        )

    def write(self, node: PeerId, record: Record, now: float) -> None:
        """See `TraceSink`."""
        self.records.append(record)
        self.machine.happened.set()

    def close(self) -> None:
        """See `TraceSink`."""

    def _deliver(self, delivery: Deliver[Handed]) -> None:
        self.delivered.append(delivery)
        self.machine.happened.set()

    async def __aenter__(self) -> Self:
        await self.driver.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.driver.__aexit__(kind, error, trace)

    @property
    def inputs(self) -> list[Input]:
        """What happened to the machine."""
        return self.machine.inputs

    def act(self, *effects: Effect) -> None:
        """Let the machine ask for these effects."""
        self.machine.todo += effects
        self.driver.put(TimerFired(_ACT))

    def dial(self, other: LiveNode) -> None:
        """Let the machine ask for a link to another node."""
        self.act(Dial(other.peer, other.hints, False))

    async def until(self, holds: Callable[[], E | None]) -> E:
        """Wait until this gives something; `TimeoutError` if it does not for long."""
        async with asyncio.timeout(LIMIT):
            while True:
                found = holds()
                if found:
                    return found
                self.machine.happened.clear()
                await self.machine.happened.wait()

    async def happens(self, sort: type[E], peer: PeerId | None = None) -> E:
        """Wait for the first input of a sort, of this peer if one is named."""
        return await self.until(lambda: next(iter(self.seen(sort, peer)), None))

    def seen(self, sort: type[E], peer: PeerId | None = None) -> list[E]:
        """The inputs of a sort so far."""
        return [
            event
            for event in self.inputs
            if isinstance(event, sort) and (peer is None or getattr(event, "peer", None) == peer)
        ]

    def messages(self, peer: PeerId) -> list[Message]:
        """What came from a peer."""
        return [event.message for event in self.seen(Received, peer)]

    def recorded(self, kind: Kind) -> list[Record]:
        """The trace records of a kind."""
        return [record for record in self.records if record.kind is kind]

    async def traced(self, kind: Kind) -> Record:
        """Wait for a trace record of a kind."""
        return await self.until(lambda: next(iter(self.recorded(kind)), None))


async def link(dialer: LiveNode, other: LiveNode) -> None:
    """Dial, and wait until both sides have the link."""
    dialer.dial(other)
    await dialer.happens(LinkUp, other.peer)
    await other.happens(LinkUp, dialer.peer)
