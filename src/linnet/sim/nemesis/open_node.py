"""A node of the open world: the shipped machine with a clock, a processor and a disk that may fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from linnet.core.errors import CellsDamaged
from linnet.core.hello import Hello
from linnet.core.ids import AuthorId, DeviceId, EventId, TopicId
from linnet.core.spaces import is_expendable, kind_of, words_for
from linnet.core.stores import CellDamage, Damage, Entry
from linnet.peer.interface import Effect, Input, NodeMachine
from linnet.sim.nemesis.budget import Account
from linnet.store.memory import MemoryCells, MemoryLog, MemoryStore


class OpenMachine:
    """The machine of a node that may be paused and whose clock may be wrong."""

    def __init__(
        self,
        name: str,
        machine: NodeMachine,
        account: Account,
        failed: Callable[[Exception], None],
        offset: float,
    ) -> None:
        self.inner = machine
        self.offset = offset
        """Seconds by which its clock is ahead."""
        self.waiting: list[Input] | None = None
        """Inputs that arrived while it was paused; None: it runs."""
        self._name = name
        self._account = account
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
        try:
            effects = self.inner.handle(event, now + self.offset)
        except Exception as error:  # a real node would end, and say why
            self._failed(error)
            return []
        self._account.handled(self._name, event, effects, now)
        return effects


class Disk:
    """Makes a store durable until the disk is full: then the node ends at its next commit."""

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


class DamageableStore(MemoryStore):
    """A store on a disk that may go bad."""

    log: DamageableLog
    cells: DamageableCells

    def __init__(self) -> None:
        super().__init__()
        self.log = DamageableLog(self._journal)
        self.cells = DamageableCells(self._journal)

    @property
    def damaged_cells(self) -> tuple[CellDamage, ...]:
        """See `CommittingStore.damaged_cells`."""
        return self.cells.damaged


class DamageableLog(MemoryLog):
    """A log that answers as `linnet.store.sqlite_log` does: damaged units are left out and reported."""

    def __init__(self, journal: list[Callable[[], None]]) -> None:
        super().__init__(journal)
        self._damaged: dict[EventId, Damage] = {}
        self._news: list[Damage] = []

    def damage(self, luck: Random) -> None:
        """Damage one random unit: it is unreadable from now on."""
        sound = [head for head in self._units if head not in self._damaged]
        if sound:
            self.spoil(luck.choice(sound))

    def spoil(self, head: EventId) -> None:
        """Damage this unit: it is unreadable from now on."""
        _, entry = self._units[head]
        found = Damage(entry.topic, entry.author, entry.device, entry.first, entry.count, entry.head)
        self._damaged[entry.head] = found
        self._news.append(found)

    def append(self, entry: Entry) -> int | None:
        """See `EventLog.append`."""
        return None if self._damaged.pop(entry.head, None) is not None else super().append(entry)

    def take_damage(self) -> list[Damage]:
        """See `EventLog.take_damage`."""
        news, self._news = self._news, []
        return [each for each in news if self.is_damaged(each)]

    def is_damaged(self, damage: Damage) -> bool:
        """See `EventLog.is_damaged`."""
        return damage.head in self._damaged

    def get(self, head: EventId) -> Entry | None:
        """See `EventLog.get`."""
        return None if head in self._damaged else super().get(head)

    def read(self, topic: TopicId, after: int, limit: int) -> list[tuple[int, Entry]]:
        """See `EventLog.read`."""
        found = super().read(topic, after, limit + len(self._damaged))
        sound = [each for each in found if each[1].head not in self._damaged][:limit]
        last = sound[-1][0] if len(sound) == limit and sound else None
        passed = (unit for position, unit in found if last is None or position <= last)
        self.left_out = tuple(self._damaged[unit.head] for unit in passed if unit.head in self._damaged)
        return sound

    def chain(
        self, topic: TopicId, author: AuthorId, device: DeviceId, first: int, last: int, limit: int
    ) -> list[Entry]:
        """See `EventLog.chain`."""
        found = super().chain(topic, author, device, first, last, limit + len(self._damaged))
        return [each for each in found if each.head not in self._damaged][:limit]


class DamageableCells(MemoryCells):
    """Cells that answer as `linnet.store.sqlite` does: damaged values are never returned."""

    def __init__(self, journal: list[Callable[[], None]]) -> None:
        super().__init__(journal)
        self._damaged: dict[CellDamage, bool] = {}
        """Damaged cells, and whether each was reported."""
        self._news: list[CellDamage] = []

    @property
    def damaged(self) -> tuple[CellDamage, ...]:
        """Cells that were found damaged and not replaced since."""
        return tuple(damage for damage, is_told in self._damaged.items() if is_told)

    def damage(self, luck: Random) -> CellDamage | None:
        """Damage one random value: it is unreadable from now on; each kind of value is as likely."""
        kinds: dict[str, list[CellDamage]] = {}
        for space, held in sorted(self._spaces.items()):
            sound = (CellDamage(space, key) for key in sorted(held))
            for each in sound:
                if each not in self._damaged:
                    kinds.setdefault(kind_of(space), []).append(each)
        if not kinds:
            return None
        struck = luck.choice(kinds[luck.choice(sorted(kinds))])
        self.spoil(struck.space, struck.key)
        return struck

    def spoil(self, space: str, key: bytes) -> None:
        """Damage this value: it is unreadable from now on."""
        self._damaged[CellDamage(space, key)] = False

    def put_back(self, space: str, keys: tuple[bytes, ...]) -> None:
        """Put back a copy of the last values, as the operator of a node does that does not start."""
        for key in keys:
            self._damaged.pop(CellDamage(space, key), None)

    def get(self, space: str, key: bytes) -> bytes | None:
        """See `Cells.get`."""
        if CellDamage(space, key) in self._damaged:
            self._meet_damage(space, (key,))
        return super().get(space, key)

    def scan(self, space: str) -> Iterator[tuple[bytes, bytes]]:
        """See `Cells.scan`."""
        wrong = tuple(each.key for each in self._damaged if each.space == space)
        if wrong:
            self._meet_damage(space, wrong)
        return super().scan(space)

    def put(self, space: str, key: bytes, value: bytes) -> None:
        """See `Cells.put`."""
        self._damaged.pop(CellDamage(space, key), None)
        super().put(space, key, value)

    def delete(self, space: str, key: bytes) -> None:
        """See `Cells.delete`."""
        self._damaged.pop(CellDamage(space, key), None)
        super().delete(space, key)

    def take_damage(self) -> list[CellDamage]:
        """See `Cells.take_damage`."""
        news, self._news = self._news, []
        return news

    def _meet_damage(self, space: str, keys: tuple[bytes, ...]) -> None:
        for damage in (CellDamage(space, key) for key in keys):
            if not self._damaged[damage]:
                self._damaged[damage] = True
                self._news.append(damage)
        if not is_expendable(space):
            held = self._spaces.get(space, {})
            sound = tuple(sorted((key, value) for key, value in held.items() if key not in keys))
            raise CellsDamaged(f"a value of {words_for(space)} is not what was written", space, keys, sound)
        for key in keys:
            self.delete(space, key)
