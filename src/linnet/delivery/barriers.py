"""Causal barriers: an event waits until all that it refers to is known or settled.

So whatever is handed over comes after its causes, whatever way and order it came in. A dependency that is
rejected, soft-failed or expired satisfies a barrier as well: it is known, if not shown. What is missing is
asked for (`linnet.delivery.recovery`). The room to wait in is bounded. When it is full the newest is let
go, with a record, and comes again by synchronisation; what others wait for is never refused in their
favour, or a long gap could not be closed from its far end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Generic, TypeVar

from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.causal_messages import Given
from linnet.delivery.config import BarrierConfig
from linnet.delivery.dag import Dag
from linnet.delivery.recovery import Recovery, RecoveryEffect
from linnet.trace.records import Kind, Record

T = TypeVar("T")


class Offered(StrEnum):
    """What became of an event that was offered."""

    READY = "ready"
    """All that it refers to is known or settled: judge it now, then call `Barriers.settled`."""
    WAITING = "waiting"
    """It comes back from `Barriers.settled` in its turn."""
    REPEATED = "repeated"
    """It is known or waits already."""
    FULL = "full"
    """There is no room to wait in; it has to come again later."""


class _Waiting(Generic[T]):
    """An event that waits."""

    __slots__ = ("item", "missing", "size")

    def __init__(self, item: T, size: int, missing: dict[EventId, None]) -> None:
        self.item = item
        self.size = size
        self.missing = missing


class Barriers(Generic[T]):
    """The events of one topic that wait for others. `T` is what the caller wants back of each."""

    def __init__(self, topic: TopicId, dag: Dag, config: BarrierConfig) -> None:
        self._topic = topic
        self._dag = dag
        self._config = config
        self._waiting: dict[EventId, _Waiting[T]] = {}
        self._needed_by: dict[EventId, dict[EventId, None]] = {}
        """For each missing event, those that wait for it."""
        self._leaves: dict[EventId, None] = {}
        """Waiting events that none waits for."""
        self._recovery = Recovery(topic, config)
        self.bytes = 0
        """Of all that wait."""

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    @property
    def missing(self) -> int:
        """Events that are asked for, or left to synchronisation."""
        return len(self._recovery)

    @property
    def left(self) -> int:
        """Events that no source had: synchronisation is due."""
        return self._recovery.left

    def waits(self, id: EventId) -> bool:
        """Whether an event is here and waits for others."""
        return id in self._waiting

    def wants(self, id: EventId) -> bool:
        """Whether something here waits for this event."""
        return id in self._needed_by

    def asks(self, peer: PeerId, id: EventId) -> bool:
        """Whether this source was asked for a missing event and is to answer."""
        return self._recovery.asks(peer, id)

    def is_left(self, id: EventId) -> bool:
        """Whether an event is missing and no source has it."""
        return self._recovery.is_left(id)

    def fits(self, refs: Iterable[EventId], size: int) -> bool:
        """Whether an event with these references would be judged at once, or has room to wait."""
        missing = [ref for ref in refs if not self._dag.satisfies(ref)]
        unknown = sum(ref not in self._waiting and ref not in self._recovery for ref in missing)
        config = self._config
        return not missing or (
            len(self._waiting) < config.events
            and self.bytes + size <= config.bytes
            and len(self._recovery) + unknown <= config.missing
        )

    def needing(self, id: EventId) -> list[T]:
        """What waits for this event."""
        return [self._waiting[one].item for one in self._needed_by.get(id, ())]

    def offer(
        self,
        id: EventId,
        refs: Iterable[EventId],
        size: int,
        item: T,
        sender: PeerId | None,
        now: float,
    ) -> tuple[Offered, list[RecoveryEffect]]:
        """An event came, whose references are these; the item of one that waits is given back later."""
        if id in self._waiting or self._dag.knows(id):
            return Offered.REPEATED, []
        missing = {ref: None for ref in refs if not self._dag.satisfies(ref)}
        if not missing:
            return Offered.READY, []
        effects: list[RecoveryEffect] = []
        new = [ref for ref in missing if ref not in self._waiting]
        if not self._room(id, size, sum(ref not in self._recovery for ref in new), effects):
            return Offered.FULL, [*effects, self._dropped(id, size, Reason.QUEUE_FULL)]
        self._recovery.got(id)
        self._waiting[id] = _Waiting(item, size, missing)
        self.bytes += size
        if id not in self._needed_by:
            self._leaves[id] = None
        for ref in missing:
            self._needed_by.setdefault(ref, {})[id] = None
            self._leaves.pop(ref, None)
            if ref not in self._waiting:
                self._recovery.miss(ref, sender, now + self._config.delay)
        return Offered.WAITING, [*effects, *self._recovery.arm(now)]

    def settled(self, id: EventId) -> list[T]:
        """An event is known or settled now, whatever its verdict: what may be judged next.

        The items given back do not depend on each other; each is judged and settled in its turn.
        """
        self._recovery.got(id)
        ready: list[T] = []
        for one in self._needed_by.pop(id, {}):
            waiting = self._waiting[one]
            del waiting.missing[id]
            if not waiting.missing:
                self._forget(one)
                ready.append(waiting.item)
        if id in self._waiting:
            self._leaves[id] = None
        return ready

    def spare(self, id: EventId, ref: EventId) -> list[T]:
        """An event need not wait for this reference after all; its item, if it waits for no other."""
        waiting = self._waiting.get(id)
        if waiting is None or ref not in waiting.missing:
            return []
        del waiting.missing[ref]
        self._needs_no_more(id, ref)
        if waiting.missing:
            return []
        self._forget(id)
        return [waiting.item]

    def fetch(self, ids: Iterable[EventId], source: PeerId | None, now: float) -> list[RecoveryEffect]:
        """Ask for events that another has and we lack, at once and of this source first."""
        wanted = [id for id in ids if not self._dag.satisfies(id) and id not in self._waiting]
        over = 0
        for id in wanted:
            if id not in self._recovery and len(self._recovery) >= self._config.missing:
                over += 1
            else:
                self._recovery.miss(id, source, now, wanted=True)
        effects = self._recovery.arm(now)
        if over:
            note = "not asked for yet"
            effects.append(
                Record(Kind.DROPPED, self._topic, events=over, reason=Reason.QUEUE_FULL, note=note)
            )
        return effects

    def ask_again(self, ids: Iterable[EventId], now: float) -> list[RecoveryEffect]:
        """Ask whoever can be asked for events that were here and are damaged, held up by them or not."""
        for id in ids:
            if not self._dag.knows(id) and len(self._recovery) < self._config.missing:
                self._recovery.miss(id, None, now + self._config.delay)
        return self._recovery.arm(now)

    def ask_back(self, ids: Iterable[EventId], source: PeerId, now: float) -> list[RecoveryEffect]:
        """Ask a source for events that nobody is held up by: they were settled without having come."""
        for id in ids:
            if self._dag.is_settled(id) and len(self._recovery) < self._config.missing:
                self._recovery.miss(id, source, now, wanted=True)
        return self._recovery.arm(now)

    def answered(
        self, peer: PeerId, answer: Given, now: float, sources: Sequence[PeerId]
    ) -> list[RecoveryEffect]:
        """A source answered a question of ours; call this after what it sent was offered."""
        self._recovery.answered(peer, answer, now)
        return self._recovery.ask(now, sources)

    def fired(self, now: float, sources: Sequence[PeerId]) -> list[RecoveryEffect]:
        """Our timer came back; these are the peers that can be asked now."""
        self._recovery.fired()
        return self._recovery.ask(now, sources)

    def up(self, peer: PeerId, now: float) -> list[RecoveryEffect]:
        """A peer can be asked that could not before."""
        self._recovery.up(peer, now)
        return self._recovery.arm(now)

    def down(self, peer: PeerId, now: float) -> list[RecoveryEffect]:
        """A peer can be asked no more."""
        self._recovery.down(peer, now)
        return self._recovery.arm(now)

    def give_up(self, id: EventId) -> tuple[list[T], list[RecoveryEffect]]:
        """Do not wait for an event any longer: all that waits for it, and for these, is let go.

        For what can never come. If it is only gone for good (expired), settle it instead.
        """
        self._recovery.got(id)
        items: list[T] = []
        effects: list[RecoveryEffect] = []
        stack = list(self._needed_by.get(id, ()))
        while stack:
            one = stack.pop()
            if one not in self._waiting:
                continue
            stack += self._needed_by.get(one, ())
            size, item = self._waiting[one].size, self._waiting[one].item
            self._let_go(one)
            items.append(item)
            effects.append(self._dropped(one, size, Reason.MISSING_DEPENDENCY))
        return items, effects

    def stop(self) -> list[RecoveryEffect]:
        """The topic is left: nothing waits any more."""
        self._waiting, self._needed_by, self._leaves, self.bytes = {}, {}, {}, 0
        return self._recovery.stop()

    def _room(self, id: EventId, size: int, missing: int, effects: list[RecoveryEffect]) -> bool:
        """Make room for one more. What others wait for takes the place of the newest that none waits for."""
        config = self._config
        if size > config.bytes or len(self._recovery) + missing > config.missing:
            return False
        needed = id in self._needed_by
        while len(self._waiting) >= config.events or self.bytes + size > config.bytes:
            if not needed or not self._leaves:
                return False
            newest = next(reversed(self._leaves))
            effects.append(self._dropped(newest, self._waiting[newest].size, Reason.QUEUE_FULL))
            self._let_go(newest)
        return True

    def _let_go(self, id: EventId) -> None:
        """A waiting event is dropped, and what only it was waiting for is not asked for any more."""
        for ref in self._waiting[id].missing:
            self._needs_no_more(id, ref)
        self._forget(id)

    def _needs_no_more(self, id: EventId, ref: EventId) -> None:
        others = self._needed_by[ref]
        del others[id]
        if not others:
            del self._needed_by[ref]
            self._recovery.unneeded(ref)
            if ref in self._waiting:
                self._leaves[ref] = None

    def _forget(self, id: EventId) -> None:
        self.bytes -= self._waiting.pop(id).size
        self._leaves.pop(id, None)

    def _dropped(self, id: EventId, size: int, reason: Reason) -> Record:
        return Record(Kind.DROPPED, self._topic, id, bytes=size, reason=reason, note="waiting")
