"""Causal barriers: an event waits until all events that it refers to are known or settled.

So every event is handed over after its causes, in whatever order and by whatever path they arrived. A
rejected, soft-failed or expired dependency also satisfies a barrier: it is known, if not shown. The room for
waiting events is bounded. When it is full, the newest is dropped, with a record, and arrives again by
synchronisation; an event that others wait for is never refused in their favour, or a long gap could not be
closed from its far end.

Missing events are requested by id. Most of them arrive by themselves, so they are requested after a delay,
first from the peer that sent the dependent event: that peer, or its author, had them. Events that no source
has are left to synchronisation, and requested again when a new source appears.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Generic, TypeVar

from msgspec import Struct

from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import TopicTimer
from linnet.delivery.causal_graph import Dag
from linnet.delivery.config import BarrierConfig
from linnet.delivery.messages import Given, Want
from linnet.delivery.want_list import WantConfig, WantList
from linnet.machine.outbox import Outbox
from linnet.trace.records import Kind, Record


class RecoveryDue(TopicTimer, frozen=True, gc=False):
    """Time to ask for missing events of a topic, or to ask the next source."""


class EventRecovery(WantList[EventId]):
    """The want list of the events that one topic lacks."""

    def __init__(self, topic: TopicId, config: BarrierConfig, out: Outbox) -> None:
        super().__init__(WantConfig(config.timeout, config.tries, config.ids), RecoveryDue(topic), out)
        self._topic = topic

    def handle_given(self, peer: PeerId, answer: Given, now: float) -> None:
        """Ask again for what a source's answer lacks; the events it sent must have been offered before."""
        self.handle_refusal(peer, answer.unknown, now)
        self.handle_answer(peer, answer.request, now)

    def ask(self, now: float, sources: Sequence[PeerId]) -> None:
        """Send the requests that are due to these sources."""
        left, batches = self.take_due(now, sources)
        for each in left:
            note = "left to synchronisation"
            self._out.record(
                Record(Kind.RESYNC, self._topic, each.item, peer=each.last, reason=each.reason, note=note)
            )
        for batch in batches:
            self._out.send(batch.peer, Want(self._topic, batch.request, batch.items))
        self.arm(now)


T = TypeVar("T")


class Offered(StrEnum):
    """The result of offering an event."""

    READY = "ready"
    """All that it refers to is known or settled: check it now, then call `Barriers.settle`."""
    WAITING = "waiting"
    """It waits; `Barriers.settle` returns it in its turn."""
    REPEATED = "repeated"
    """It is known or waits already."""
    FULL = "full"
    """There is no room for it to wait; it must be offered again later."""


class _Waiting(Struct, Generic[T], eq=False):
    """A waiting event."""

    item: T
    size: int
    missing: dict[EventId, None]


class Barriers(Generic[T]):
    """The events of one topic that wait for others. `T` is the caller's item for each of them."""

    def __init__(self, topic: TopicId, dag: Dag, config: BarrierConfig, out: Outbox) -> None:
        self._topic = topic
        self._dag = dag
        self._config = config
        self._out = out
        self._waiting: dict[EventId, _Waiting[T]] = {}
        self._needed_by: dict[EventId, dict[EventId, None]] = {}
        """For each missing event, the events that wait for it."""
        self._leaves: dict[EventId, None] = {}
        """Waiting events that no other waits for."""
        self._recovery = EventRecovery(topic, config, out)
        self.bytes = 0
        """The size of all waiting events."""

    def __len__(self) -> int:
        """Return how many events wait."""
        return len(self._waiting)

    @property
    def missing(self) -> int:
        """The number of events that are requested or left to synchronisation."""
        return len(self._recovery)

    @property
    def left(self) -> int:
        """The number of events that no source had: synchronisation is due."""
        return self._recovery.left

    def waits(self, id: EventId) -> bool:
        """Return whether an event is here and waits for others."""
        return id in self._waiting

    def wants(self, id: EventId) -> bool:
        """Return whether an event here waits for this one."""
        return id in self._needed_by

    def asks(self, peer: PeerId, id: EventId) -> bool:
        """Return whether this source was asked for a missing event and should answer."""
        return self._recovery.asks(peer, id)

    def is_left(self, id: EventId) -> bool:
        """Return whether an event is missing and no source has it."""
        return self._recovery.is_left(id)

    def fits(self, refs: Iterable[EventId], size: int) -> bool:
        """Return whether an event with these references is ready, or has room to wait."""
        missing = [ref for ref in refs if not self._dag.satisfies(ref)]
        unknown = sum(ref not in self._waiting and ref not in self._recovery for ref in missing)
        config = self._config
        return not missing or (
            len(self._waiting) < config.events
            and self.bytes + size <= config.bytes
            and len(self._recovery) + unknown <= config.missing
        )

    def awaited_by(self, id: EventId) -> set[EventId]:
        """Return all that an event waits for, directly or through events that wait themselves."""
        found: set[EventId] = set()
        stack = [id]
        while stack:
            waiting = self._waiting.get(stack.pop())
            new = [ref for ref in waiting.missing if ref not in found] if waiting is not None else []
            found.update(new)
            stack += new
        return found

    def needing(self, id: EventId) -> list[T]:
        """Return the items that wait for this event."""
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
        """Take an event with these references; if it has to wait, its item is returned later.

        Returns the result, and how many events were dropped for want of room, including this one.
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
                self._recovery.want(ref, sender, now + self._config.delay)
        self._recovery.arm(now)
        return Offered.WAITING, dropped

    def settle(self, id: EventId) -> list[T]:
        """Free the events that wait for an event that is known or settled now, whatever its verdict.

        Returns the items that are ready. They do not depend on each other; check and settle each in turn.
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
        """Let an event no longer wait for this reference; return its item if it waits for no other."""
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
        """Ask for events that a source has and we lack, at once and from this source first."""
        wanted = [id for id in ids if not self._dag.satisfies(id) and id not in self._waiting]
        over = 0
        for id in wanted:
            if id not in self._recovery and len(self._recovery) >= self._config.missing:
                over += 1
            else:
                self._recovery.want(id, source, now, wanted=True)
        self._recovery.arm(now)
        if over:
            note = "not asked for yet"
            self._out.record(
                Record(Kind.DROPPED, self._topic, events=over, reason=Reason.QUEUE_FULL, note=note)
            )

    def ask_again(self, ids: Iterable[EventId], now: float) -> None:
        """Ask any source for events that were found damaged, even if no event waits for them."""
        for id in ids:
            if not self._dag.knows(id) and len(self._recovery) < self._config.missing:
                self._recovery.want(id, None, now + self._config.delay)
        self._recovery.arm(now)

    def ask_back(self, ids: Iterable[EventId], source: PeerId, now: float) -> None:
        """Ask a source for events that were settled without having arrived, though nothing waits for them."""
        for id in ids:
            if self._dag.is_settled(id) and len(self._recovery) < self._config.missing:
                self._recovery.want(id, source, now, wanted=True)
        self._recovery.arm(now)

    def handle_answer(self, peer: PeerId, answer: Given, now: float, sources: Sequence[PeerId]) -> None:
        """Ask on after a source has answered; call this after the events that it sent were offered."""
        self._recovery.handle_given(peer, answer, now)
        self._recovery.ask(now, sources)

    def handle_timer(self, now: float, sources: Sequence[PeerId]) -> None:
        """Send the requests that are due (`RecoveryDue`) to these sources, which can be asked now."""
        self._recovery.handle_timer()
        self._recovery.ask(now, sources)

    def add_source(self, peer: PeerId, now: float) -> None:
        """Add a peer that could not be asked before."""
        self._recovery.handle_source_up(peer, now)
        self._recovery.arm(now)

    def remove_source(self, peer: PeerId, now: float) -> None:
        """Stop asking a peer."""
        self._recovery.handle_source_down(peer, now)
        self._recovery.arm(now)

    def give_up(self, id: EventId) -> list[T]:
        """Stop waiting for an event; drop and return all that waits for it, directly or not.

        Use it for an event that can never arrive. If it is only gone for good (expired), settle it instead.
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
        """Drop all waiting events: the topic is left."""
        self._waiting, self._needed_by, self._leaves, self.bytes = {}, {}, {}, 0
        self._recovery.stop()

    def _make_room(self, id: EventId, size: int, missing: int) -> tuple[bool, int]:
        """Make room for one more event; return whether there is room, and how many were dropped.

        An event that others wait for takes the place of the newest one that none waits for.
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
        """Drop a waiting event, and stop asking for what only it was waiting for."""
        for ref in self._waiting[id].missing:
            self._drop_need(id, ref)
        self._forget(id)

    def _drop_need(self, id: EventId, ref: EventId) -> None:
        others = self._needed_by[ref]
        del others[id]
        if not others:
            del self._needed_by[ref]
            self._recovery.forget_need(ref)
            if ref in self._waiting:
                self._leaves[ref] = None

    def _forget(self, id: EventId) -> None:
        self.bytes -= self._waiting.pop(id).size
        self._leaves.pop(id, None)

    def _record_drop(self, id: EventId, size: int, reason: Reason) -> None:
        self._out.record(Record(Kind.DROPPED, self._topic, id, bytes=size, reason=reason, note="waiting"))
