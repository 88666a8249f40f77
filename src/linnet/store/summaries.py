"""What a SQLite store remembers of each topic and chain it was asked about, so that it need not count."""

from __future__ import annotations

from collections import deque

from linnet.core.ids import AuthorId, DeviceId, EventId, TopicId
from linnet.core.stores import ChainHead, Entry
from linnet.store.changes import Row


class ChainSummary:
    """What the held units of one author and device in one topic span."""

    __slots__ = ("author", "device", "first", "head", "id", "last", "longest", "units")

    def __init__(self, key: int, author: AuthorId, device: DeviceId) -> None:
        self.id = key
        self.author = author
        self.device = device
        self.units = 0
        self.longest = 0
        """The most events of one unit: how far back an overlapping unit can begin."""
        self.first: int | None = None
        self.last: int | None = None
        self.head: EventId | None = None

    def add(self, unit: Entry) -> None:
        """Count a unit in."""
        self.units += 1
        first = unit.first
        if first is None:
            return
        last = first + unit.count - 1
        if unit.count > self.longest:
            self.longest = unit.count
        if self.first is None or first < self.first:
            self.first = first
        if self.last is None or last > self.last:
            self.last = last
            self.head = unit.head

    def chain_head(self) -> ChainHead | None:
        """Where it begins and ends; None if it has no numbered unit."""
        if self.first is None or self.last is None or self.head is None:
            return None
        return ChainHead(self.author, self.device, self.first, self.last, self.head)

    def row(self, topic: int) -> Row:
        """Its row in the table `chain`."""
        return (
            self.id,
            topic,
            self.author,
            self.device,
            self.units,
            self.longest,
            self.first,
            self.last,
            self.head,
        )


class TopicSummary:
    """How much of one topic is held, its chains, and its units that may not be durable yet."""

    __slots__ = (
        "bytes",
        "chains",
        "cut",
        "events",
        "fresh",
        "id",
        "newest",
        "oldest",
        "owners",
        "stepped",
        "topic",
        "units",
    )

    def __init__(self, key: int, topic: TopicId) -> None:
        self.id = key
        self.topic = topic
        self.units = 0
        self.events = 0
        self.bytes = 0
        self.stepped = False
        """Whether `stored_at` ever went back, so that the index by time does not follow positions."""
        self.oldest: float | None = None
        self.newest: float | None = None
        self.cut = 0
        """The position through which units are gone, though their rows may still be there."""
        self.chains: dict[tuple[AuthorId, DeviceId], ChainSummary] = {}
        self.owners: dict[int, ChainSummary] = {}
        """The same chains by id."""
        self.fresh: deque[tuple[int, Entry]] = deque()
        """Units that may not be durable yet, oldest first."""

    def open_chain(self, key: int, author: AuthorId, device: DeviceId) -> ChainSummary:
        """Begin a chain."""
        chain = self.chains[author, device] = self.owners[key] = ChainSummary(key, author, device)
        return chain

    def close_chain(self, chain: ChainSummary) -> None:
        """Forget a chain of which no unit is left."""
        del self.chains[chain.author, chain.device], self.owners[chain.id]

    def add(self, position: int, unit: Entry) -> None:
        """Count a unit in."""
        if self.units == 0:
            self.oldest = unit.stored_at
        elif self.newest is not None and unit.stored_at < self.newest:
            self.stepped = True
        self.newest = unit.stored_at
        self.units += 1
        self.events += unit.count
        self.bytes += len(unit.raw)
        self.fresh.append((position, unit))

    def remove(self, unit: Entry) -> None:
        """Count a unit out."""
        self.units -= 1
        self.events -= unit.count
        self.bytes -= len(unit.raw)
        self.chains[unit.author, unit.device].units -= 1

    def row(self) -> Row | None:
        """Its row in the table `topic`; None if it is empty."""
        if self.units == 0:
            return None
        return self.id, self.topic, self.units, self.events, self.bytes, int(self.stepped)
