"""A node of the open world: the shipped machine behind a clock, a processor and a disk that may fail."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from linnet.core.hello import Hello
from linnet.core.ids import AuthorId, DeviceId, EventId, TopicId
from linnet.core.stores import Damage, Entry
from linnet.peer.interface import Effect, Input, NodeMachine
from linnet.sim.nemesis.budget import Account
from linnet.store.memory import MemoryLog, MemoryStore


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
        """What came while it was paused; None: it runs."""
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


class DamageableStore(MemoryStore):
    """A store on a disk that may go bad."""

    def __init__(self) -> None:
        super().__init__()
        self._log = DamageableLog(self._journal)

    @property
    def log(self) -> DamageableLog:
        """The event log."""
        return self._log

    _log: DamageableLog


class DamageableLog(MemoryLog):
    """A log that answers as `linnet.store.sqlite_log` does: what is damaged is left out, and told."""

    def __init__(self, journal: list[Callable[[], None]]) -> None:
        super().__init__(journal)
        self._damaged: dict[EventId, Damage] = {}
        self._news: list[Damage] = []

    def damage(self, luck: Random) -> None:
        """Let one unit that is held be unreadable from now on."""
        sound = [head for head in self._units if head not in self._damaged]
        if sound:
            self.spoil(luck.choice(sound))

    def spoil(self, head: EventId) -> None:
        """Let this unit be unreadable from now on."""
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
