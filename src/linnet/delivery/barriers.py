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
from linnet.delivery.recovery import Recovery
from linnet.machine.outbox import Outbox
from linnet.trace.records import Kind, Record

T = TypeVar("T")


class Offered(StrEnum):
    """What became of an event that was offered."""

    READY = "ready"
    """All that it refers to is known or settled: judge it now, then call `Barriers.settle`."""
    WAITING = "waiting"
    """It comes back from `Barriers.settle` in its turn."""
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

    def __init__(self, topic: TopicId, dag: Dag, config: BarrierConfig, out: Outbox) -> None:
        self._topic = topic
        self._dag = dag
        self._config = config
        self._out = out
        self._waiting: dict[EventId, _Waiting[T]] = {}
        self._needed_by: dict[EventId, dict[EventId, None]] = {}
        """For each missing event, those that wait for it."""
        self._leaves: dict[EventId, None] = {}
        """Waiting events that none waits for."""
        self._recovery = Recovery(topic, config, out)
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
    ) -> tuple[Offered, int]:
        """Take an event with these references; the item of one that waits is given back later.

        Returns what became of it, and how many were dropped for want of room, itself or others.
        """
        if id in self._waiting or self._dag.knows(id):
            return Offered.REPEATED, 0
        missing = {ref: None for ref in refs if not self._dag.satisfies(ref)}
        if not missing:
            return Offered.READY, 0
        new = [ref for ref in missing if ref not in self._waiting]
        fits, dropped = self._make_room(id, size, sum(ref not in self._recovery for ref in new))
        if not fits:
            self._record_drop(id, size, Reason.QUEUE_FULL)
            return Offered.FULL, dropped + 1
        self._recovery.remove(id)
        self._waiting[id] = _Waiting(item, size, missing)
        self.bytes += size
        if id not in self._needed_by:
            self._leaves[id] = None
        for ref in missing:
            self._needed_by.setdefault(ref, {})[id] = None
            self._leaves.pop(ref, None)
            if ref not in self._waiting:
                self._recovery.miss(ref, sender, now + self._config.delay)
        self._recovery.arm(now)
        return Offered.WAITING, dropped

    def settle(self, id: EventId) -> list[T]:
        """Free what waits for an event that is known or settled now, whatever its verdict, to be judged next.

        The items given back do not depend on each other; each is judged and settled in its turn.
        """
        self._recovery.remove(id)
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
        self._drop_need(id, ref)
        if waiting.missing:
            return []
        self._forget(id)
        return [waiting.item]

    def fetch(self, ids: Iterable[EventId], source: PeerId | None, now: float) -> None:
        """Ask for events that another has and we lack, at once and of this source first."""
        wanted = [id for id in ids if not self._dag.satisfies(id) and id not in self._waiting]
        over = 0
        for id in wanted:
            if id not in self._recovery and len(self._recovery) >= self._config.missing:
                over += 1
            else:
                self._recovery.miss(id, source, now, wanted=True)
        self._recovery.arm(now)
        if over:
            note = "not asked for yet"
            self._out.record(
                Record(Kind.DROPPED, self._topic, events=over, reason=Reason.QUEUE_FULL, note=note)
            )

    def ask_again(self, ids: Iterable[EventId], now: float) -> None:
        """Ask whoever can be asked for events that were here and are damaged, held up by them or not."""
        for id in ids:
            if not self._dag.knows(id) and len(self._recovery) < self._config.missing:
                self._recovery.miss(id, None, now + self._config.delay)
        self._recovery.arm(now)

    def ask_back(self, ids: Iterable[EventId], source: PeerId, now: float) -> None:
        """Ask a source for events that nobody is held up by: they were settled without having come."""
        for id in ids:
            if self._dag.is_settled(id) and len(self._recovery) < self._config.missing:
                self._recovery.miss(id, source, now, wanted=True)
        self._recovery.arm(now)

    def handle_answer(self, peer: PeerId, answer: Given, now: float, sources: Sequence[PeerId]) -> None:
        """Ask on after a source has answered; call this after what it sent was offered."""
        self._recovery.handle_answer(peer, answer, now)
        self._recovery.ask(now, sources)

    def handle_timer(self, now: float, sources: Sequence[PeerId]) -> None:
        """Ask for what is due (`RecoveryDue`); these are the peers that can be asked now."""
        self._recovery.handle_timer()
        self._recovery.ask(now, sources)

    def add_source(self, peer: PeerId, now: float) -> None:
        """Ask a peer as well that could not be asked before."""
        self._recovery.add_source(peer, now)
        self._recovery.arm(now)

    def remove_source(self, peer: PeerId, now: float) -> None:
        """Ask a peer no more."""
        self._recovery.remove_source(peer, now)
        self._recovery.arm(now)

    def give_up(self, id: EventId) -> list[T]:
        """Wait for an event no longer: all that waits for it, and for these, is let go and given back.

        For what can never come. If it is only gone for good (expired), settle it instead.
        """
        self._recovery.remove(id)
        items: list[T] = []
        stack = list(self._needed_by.get(id, ()))
        while stack:
            one = stack.pop()
            if one not in self._waiting:
                continue
            stack += self._needed_by.get(one, ())
            size, item = self._waiting[one].size, self._waiting[one].item
            self._let_go(one)
            items.append(item)
            self._record_drop(one, size, Reason.MISSING_DEPENDENCY)
        return items

    def stop(self) -> None:
        """Let all go that waits: the topic is left."""
        self._waiting, self._needed_by, self._leaves, self.bytes = {}, {}, {}, 0
        self._recovery.stop()

    def _make_room(self, id: EventId, size: int, missing: int) -> tuple[bool, int]:
        """Make room for one more; whether there is, and how many were dropped for it.

        What others wait for takes the place of the newest that none waits for.
        """
        config, dropped = self._config, 0
        if size > config.bytes or len(self._recovery) + missing > config.missing:
            return False, 0
        needed = id in self._needed_by
        while len(self._waiting) >= config.events or self.bytes + size > config.bytes:
            if not needed or not self._leaves:
                return False, dropped
            newest = next(reversed(self._leaves))
            self._record_drop(newest, self._waiting[newest].size, Reason.QUEUE_FULL)
            self._let_go(newest)
            dropped += 1
        return True, dropped

    def _let_go(self, id: EventId) -> None:
        """A waiting event is dropped, and what only it was waiting for is not asked for any more."""
        for ref in self._waiting[id].missing:
            self._drop_need(id, ref)
        self._forget(id)

    def _drop_need(self, id: EventId, ref: EventId) -> None:
        others = self._needed_by[ref]
        del others[id]
        if not others:
            del self._needed_by[ref]
            self._recovery.drop_need(ref)
            if ref in self._waiting:
                self._leaves[ref] = None

    def _forget(self, id: EventId) -> None:
        self.bytes -= self._waiting.pop(id).size
        self._leaves.pop(id, None)

    def _record_drop(self, id: EventId, size: int, reason: Reason) -> None:
        self._out.record(Record(Kind.DROPPED, self._topic, id, bytes=size, reason=reason, note="waiting"))
