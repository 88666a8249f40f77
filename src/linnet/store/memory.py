"""A store in memory, for simulations, tests, and nodes that store nothing durably."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator

from linnet.core.errors import StoreError
from linnet.core.ids import AuthorId, DeviceId, EventId, TopicId
from linnet.core.stores import CellDamage, ChainHead, Damage, Entry, Kept

Undo = Callable[[], None]


class MemoryStore:
    """A `CommittingStore` that forgets everything with its process. Memory neither fails nor is damaged."""

    failed: StoreError | None = None
    damaged: tuple[Damage, ...] = ()
    backlog = 0
    free_bytes: int | None = None

    def __init__(self) -> None:
        self._journal: list[Undo] = []
        self.log = MemoryLog(self._journal)
        """The event log."""
        self.cells = MemoryCells(self._journal)
        """The named values."""

    @property
    def damaged_cells(self) -> tuple[CellDamage, ...]:
        """Always empty."""
        return ()

    def on_failure(self, report: Callable[[StoreError], None]) -> None:
        """Memory does not fail, so `report` is never called."""

    def commit(self, done: Callable[[], None]) -> None:
        """Call `done`: the writes stay."""
        self._journal.clear()
        done()

    def rollback(self) -> None:
        """Forget the writes since the last `commit`."""
        while self._journal:
            self._journal.pop()()

    def close(self) -> None:
        """Forget the writes since the last `commit`. The rest can still be read."""
        self.rollback()


class _Chain:
    """The held units of one author and device in one topic."""

    __slots__ = ("longest", "numbered", "order", "units")

    def __init__(self, order: int) -> None:
        self.order = order
        self.longest = 0
        self.units = 0
        self.numbered: list[tuple[int, int, Entry]] = []
        """(first, position, unit) of the units with a sequence number, in this order."""

    def add(self, position: int, entry: Entry) -> None:
        self.units += 1
        if entry.first is not None:
            self.longest = max(self.longest, entry.count)
            insort(self.numbered, (entry.first, position, entry), key=_place)

    def remove(self, position: int, entry: Entry) -> None:
        self.units -= 1
        if entry.first is not None:
            del self.numbered[bisect_left(self.numbered, (entry.first, position), key=_place)]

    def overlapping(self, first: int, last: int) -> list[Entry]:
        low = bisect_left(self.numbered, (first - self.longest + 1, 0), key=_place)
        high = bisect_left(self.numbered, (last + 1, 0), key=_place)
        return [unit for begin, _, unit in self.numbered[low:high] if begin + unit.count > first]

    def head(self, author: AuthorId, device: DeviceId) -> ChainHead:
        newest = self.numbered[-1][0]
        low = bisect_left(self.numbered, (newest - self.longest + 1, 0), key=_place)
        begin, _, unit = max(self.numbered[low:], key=lambda it: (it[0] + it[2].count, -it[1]))
        return ChainHead(author, device, self.numbered[0][0], begin + unit.count - 1, unit.head)


class _Topic:
    """The held units of one topic, oldest first."""

    __slots__ = ("bytes", "chains", "entries", "events", "positions", "stepped")

    def __init__(self) -> None:
        self.positions: list[int] = []
        self.entries: list[Entry] = []
        self.chains: dict[tuple[AuthorId, DeviceId], _Chain] = {}
        self.bytes = 0
        self.events = 0
        self.stepped = False
        """Whether `stored_at` ever went back, so that it cannot be searched by bisection."""


class MemoryLog:
    """The event log of a `MemoryStore`; see `linnet.core.stores.EventLog`. Memory is never damaged."""

    left_out: tuple[Damage, ...] = ()

    def take_damage(self) -> list[Damage]:
        """Return an empty list."""
        return []

    def is_damaged(self, damage: Damage) -> bool:
        """Return False."""
        return False

    def __init__(self, journal: list[Undo]) -> None:
        self._journal = journal
        self._end = 0
        self._units: dict[EventId, tuple[int, Entry]] = {}
        self._topics: dict[TopicId, _Topic] = {}

    def append(self, entry: Entry) -> int | None:
        """Store a unit and return its position; None if a unit with this head is there already."""
        if entry.head in self._units:
            return None
        topic = self._topics.get(entry.topic)
        if topic is None:
            topic = self._topics[entry.topic] = _Topic()
        self._end += 1
        position = self._end
        stepped = topic.stepped
        if topic.entries and entry.stored_at < topic.entries[-1].stored_at:
            topic.stepped = True
        topic.positions.append(position)
        topic.entries.append(entry)
        owner = (entry.author, entry.device)
        chain = topic.chains.get(owner)
        if chain is None:
            chain = topic.chains[owner] = _Chain(position)
        self._hold(topic, chain, position, entry)
        self._journal.append(lambda: self._take_back(topic, stepped))
        return position

    def get(self, head: EventId) -> Entry | None:
        """Return the unit whose last event has this id; None if there is none."""
        found = self._units.get(head)
        return None if found is None else found[1]

    def read(self, topic: TopicId, after: int, limit: int) -> list[tuple[int, Entry]]:
        """Return units of a topic past a position, oldest first."""
        held = self._topics.get(topic)
        if held is None:
            return []
        low = bisect_right(held.positions, after)
        return list(zip(held.positions[low : low + limit], held.entries[low : low + limit], strict=True))

    def chain(
        self, topic: TopicId, author: AuthorId, device: DeviceId, first: int, last: int, limit: int
    ) -> list[Entry]:
        """Return units of one chain that overlap a range of sequence numbers, in its order."""
        held = self._topics.get(topic)
        chain = None if held is None else held.chains.get((author, device))
        return [] if chain is None else chain.overlapping(first, last)[:limit]

    def heads(self, topic: TopicId) -> list[ChainHead]:
        """Return the ends of every chain of a topic, in the order in which their first units came."""
        held = self._topics.get(topic)
        if held is None:
            return []
        # A rollback may have put a chain back at the end of the dict.
        chains = sorted(held.chains.items(), key=lambda item: item[1].order)
        return [chain.head(*owner) for owner, chain in chains if chain.numbered]

    def kept(self, topic: TopicId) -> Kept:
        """Return how much of a topic is held."""
        held = self._topics.get(topic)
        if held is None or not held.entries:
            return Kept(0, 0, 0, None)
        return Kept(len(held.entries), held.events, held.bytes, held.entries[0].stored_at)

    def since(self, topic: TopicId, stored_at: float) -> int:
        """Return the position after which all units of a topic were stored at this time or later."""
        held = self._topics.get(topic)
        if held is None:
            return 0
        if not held.stepped:
            older = bisect_left(held.entries, stored_at, key=lambda unit: unit.stored_at)
            return held.positions[older - 1] if older else 0
        pairs = zip(reversed(held.positions), reversed(held.entries), strict=True)
        return next((position for position, unit in pairs if unit.stored_at < stored_at), 0)

    def end(self) -> int:
        """Return the last position given; 0 if none ever was."""
        return self._end

    def evict(self, topic: TopicId, before: float | None, max_bytes: int | None, limit: int) -> list[Entry]:
        """Remove the oldest units of a topic until none is older and its bytes fit; return them."""
        held = self._topics.get(topic)
        if held is None:
            return []
        through = 0 if before is None else self.since(topic, before)
        left, count = held.bytes, 0
        for position, unit in zip(held.positions, held.entries, strict=True):
            if count == limit or (position > through and (max_bytes is None or left <= max_bytes)):
                break
            left -= len(unit.raw)
            count += 1
        return self._remove_oldest(held, count)

    def _remove_oldest(self, topic: _Topic, count: int) -> list[Entry]:
        if count == 0:
            return []
        positions, entries = topic.positions[:count], topic.entries[:count]
        del topic.positions[:count], topic.entries[:count]
        chains = [
            self._let_go(topic, position, entry) for position, entry in zip(positions, entries, strict=True)
        ]
        stepped = topic.stepped
        topic.stepped = stepped and bool(topic.entries)

        def put_back() -> None:
            topic.stepped = stepped
            topic.positions[:0], topic.entries[:0] = positions, entries
            for position, entry, chain in zip(positions, entries, chains, strict=True):
                topic.chains.setdefault((entry.author, entry.device), chain)
                self._hold(topic, chain, position, entry)

        self._journal.append(put_back)
        return entries

    def _hold(self, topic: _Topic, chain: _Chain, position: int, entry: Entry) -> None:
        topic.bytes += len(entry.raw)
        topic.events += entry.count
        chain.add(position, entry)
        self._units[entry.head] = (position, entry)

    def _let_go(self, topic: _Topic, position: int, entry: Entry) -> _Chain:
        topic.bytes -= len(entry.raw)
        topic.events -= entry.count
        del self._units[entry.head]
        owner = (entry.author, entry.device)
        chain = topic.chains[owner]
        chain.remove(position, entry)
        if chain.units == 0:
            del topic.chains[owner]
        return chain

    def _take_back(self, topic: _Topic, stepped: bool) -> None:
        """Undo the newest append."""
        self._let_go(topic, topic.positions.pop(), topic.entries.pop())
        topic.stepped = stepped
        self._end -= 1


class MemoryCells:
    """The named values of a `MemoryStore`; see `linnet.core.stores.Cells`."""

    def __init__(self, journal: list[Undo]) -> None:
        self._journal = journal
        self._spaces: dict[str, dict[bytes, bytes]] = {}

    def get(self, space: str, key: bytes) -> bytes | None:
        """Return the value; None if there is none."""
        return self._spaces.get(space, {}).get(key)

    def put(self, space: str, key: bytes, value: bytes) -> None:
        """Set a value."""
        before = self.get(space, key)
        self._set(space, key, value)
        self._journal.append(lambda: self._set(space, key, before))

    def delete(self, space: str, key: bytes) -> None:
        """Delete a value, if there is one."""
        before = self.get(space, key)
        if before is not None:
            self._set(space, key, None)
            self._journal.append(lambda: self._set(space, key, before))

    def scan(self, space: str) -> Iterator[tuple[bytes, bytes]]:
        """Return all values of a space, in the order of their keys, as they are at the call."""
        return iter(sorted(self._spaces.get(space, {}).items()))

    def take_damage(self) -> list[CellDamage]:
        """Return an empty list: memory is never damaged."""
        return []

    def _set(self, space: str, key: bytes, value: bytes | None) -> None:
        if value is None:
            self._spaces.get(space, {}).pop(key, None)
        else:
            self._spaces.setdefault(space, {})[key] = value


def _place(unit: tuple[int, int, Entry] | tuple[int, int]) -> tuple[int, int]:
    return unit[0], unit[1]
