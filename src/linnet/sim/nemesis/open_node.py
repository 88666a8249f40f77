"""A node of the open world: the shipped machine behind a clock, a processor and a disk that may fail."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from random import Random

from msgspec.structs import replace

from linnet.core.hello import Hello
from linnet.core.ids import PeerId
from linnet.core.inputs import DialFailed
from linnet.peer.interface import Effect, Input, NodeMachine
from linnet.store.memory import MemoryStore

STORM = 30_000
"""Dials from one node to one peer in vain after which a run ends: it would take hours."""


class DialStorm(Exception):
    """One node dials another without end."""


class Dials:
    """Dials that came to nothing: who dialled whom, and when."""

    def __init__(self) -> None:
        self.failed: dict[tuple[str, PeerId], list[float]] = defaultdict(list)

    def fail(self, node: str, peer: PeerId, now: float) -> None:
        """A dial came to nothing. Raises `DialStorm` if that happens all the time."""
        times = self.failed[node, peer]
        times.append(now)
        if len(times) >= STORM:
            raise DialStorm(f"{node} dialled {peer.hex()[:8]} {STORM} times in {now - times[0]:.0f} s")

    def worst(self, within: float) -> tuple[int, str, PeerId | None]:
        """The most that one node failed to reach one peer within so many seconds."""
        most: tuple[int, str, PeerId | None] = (0, "", None)
        for (node, peer), times in self.failed.items():
            first = 0
            for last, time in enumerate(times):
                while times[first] <= time - within:
                    first += 1
                if last - first + 1 > most[0]:
                    most = (last - first + 1, node, peer)
        return most


class OpenMachine:
    """The machine of a node that may be paused and whose clock may be wrong."""

    def __init__(
        self,
        name: str,
        machine: NodeMachine,
        dials: Dials,
        failed: Callable[[Exception], None],
        offset: float,
    ) -> None:
        self.inner = machine
        self.offset = offset
        """Seconds by which its clock is ahead."""
        self.waiting: list[Input] | None = None
        """What came while it was paused; None: it runs."""
        self._name = name
        self._dials = dials
        self._failed = failed

    @property
    def hello(self) -> Hello:
        """See `NodeMachine.hello`."""
        return self.inner.hello

    def handle(self, event: Input, now: float) -> list[Effect]:
        """See `NodeMachine.handle`."""
        if self.waiting is not None:
            self.waiting.append(event)
            return []
        if isinstance(event, DialFailed):
            self._dials.fail(self._name, event.peer, now)
        try:
            return self.inner.handle(event, now + self.offset)
        except Exception as error:  # a real node would end, and say why
            self._failed(error)
            return []


class Disk:
    """What makes a store durable, until the disk is full: then the node ends at its next commit."""

    def __init__(self, store: MemoryStore, ended: Callable[[], None]) -> None:
        self._store = store
        self._ended = ended
        self.is_full = False

    def commit(self, done: Callable[[], None]) -> None:
        """See `Durable.commit`."""
        if self.is_full:
            self._ended()
        else:
            self._store.commit(done)

    def rollback(self) -> None:
        """See `Durable.rollback`."""
        self._store.rollback()


def damage_log(store: MemoryStore, luck: Random) -> None:
    """Alter one byte of one unit that a store holds, as a bad disk does."""
    topics = store.log._topics
    held = [(topic, place) for topic in topics.values() for place in range(len(topic.entries))]
    if not held:
        return
    topic, place = luck.choice(held)
    entry = topic.entries[place]
    at = luck.randrange(len(entry.raw))
    raw = entry.raw[:at] + bytes([entry.raw[at] ^ (1 << luck.randrange(8))]) + entry.raw[at + 1 :]
    spoiled = replace(entry, raw=raw)
    topic.entries[place] = spoiled
    store.log._units[entry.head] = (topic.positions[place], spoiled)
    chain = topic.chains[entry.author, entry.device]
    chain.numbered = [
        (first, position, spoiled if unit is entry else unit) for first, position, unit in chain.numbered
    ]
