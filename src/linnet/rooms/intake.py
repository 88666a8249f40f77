"""What becomes of an event that reaches a member: checked, judged, put in its place.

Control events are judged as soon as their control heads are known, whatever else is missing: authority is
defined by the control DAG alone, and a newcomer has that before any history. Everything, control events
too, takes its place in the room's order only after all that it refers to.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from msgspec import Struct

from linnet.core.effects import Blame
from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.barriers import Barriers, Offered
from linnet.delivery.context import Context
from linnet.delivery.dag import Dag
from linnet.delivery.recovery import RecoveryEffect
from linnet.delivery.sorted_ids import SortedIds
from linnet.event.event import Event, Unverified, Verified
from linnet.event.signing import unit_head
from linnet.identity.cards import check_dates
from linnet.rooms.access.control_dag import ControlDag
from linnet.rooms.access.plain import PlainState
from linnet.rooms.access.verdict import Refusal
from linnet.rooms.authoring import refs_of
from linnet.rooms.config import RoomsConfig
from linnet.rooms.content import CONTROL_KINDS, CREATE
from linnet.rooms.memory import LATE, SOFT, RoomMemory
from linnet.trace.records import Kind, Record

IntakeEffect: TypeAlias = RecoveryEffect | Blame | Record


class Verdict(Enum):
    """What the room's rules say of an event."""

    ACCEPTED = "accepted"
    SOFT_FAILED = "soft_failed"
    REJECTED = "rejected"


class Arrival(Struct, frozen=True, gc=False):
    """An event that was checked, and how it came."""

    verified: Verified
    source: PeerId | None
    """None: it is our own, or from the store."""
    hops: int
    age_us: int

    @property
    def event(self) -> Event:
        """The event."""
        return self.verified.events[0]


class Placed(Struct, frozen=True, gc=False):
    """An event that has its place, or was refused one."""

    arrival: Arrival
    verdict: Verdict
    position: int | None
    """In the log; None if it is refused."""
    late: bool
    refusal: Refusal | None


class Intake:
    """The way in, for one room."""

    def __init__(
        self,
        room: TopicId,
        context: Context,
        config: RoomsConfig,
        control: ControlDag,
        dag: Dag,
        ids: SortedIds,
        plain: PlainState,
        memory: RoomMemory,
        order: Barriers[Arrival],
    ) -> None:
        self._room = room
        self._context = context
        self._config = config
        self._control = control
        self._dag = dag
        self._ids = ids
        self._plain = plain
        self._memory = memory
        self.order = order
        """Events that wait for all that they refer to."""
        self._lane: dict[EventId, dict[EventId, Arrival]] = {}
        """Control events that wait for a control head, by the one that they wait for. All of them wait in
        `order` too, which bounds them and asks for what is missing."""
        self.shed: dict[EventId, None] = {}
        """Soft-failed events that were one too many of their author, and are not to be fetched again."""
        self._soft: dict[bytes, int] = {}
        """Soft-failed events by author that nobody refers to."""
        self._heads: dict[EventId, None] = {}
        """Heads of the control events that have their place: what is placed later cannot be in their past.
        Others, which were judged early, may follow the very event that is held against them."""
        self._doubted: dict[EventId, Refusal] = {}
        """Control events that were soft-failed when they were judged, and have no place yet."""
        self.rejected = 0
        self.soft_failed = 0

    def knows(self, event: EventId) -> bool:
        """Whether nothing is to be done when this event comes once more."""
        return self._dag.knows(event) or event in self._memory.rejected or self.order.waits(event)

    def check(self, unit: Unverified, source: PeerId, hops: int, age_us: int) -> Arrival:
        """A unit as an event whose signature holds; `InvalidEvent` says what is wrong."""
        if len(unit.tails) != 1 or unit.seq is None:
            raise InvalidEvent(Reason.MALFORMED, "a room's events come one by one, in chains")
        card = self._context.cards.find(unit.author, unit.device)
        if card is None:
            raise InvalidEvent(Reason.UNKNOWN_DEVICE, "no card came with the device's first event")
        verified = self._context.verify(unit, card)
        event = verified.events[0]
        try:
            check_dates(card, event.time / 1000)
        except RemoteError as error:
            raise InvalidEvent(error.reason, error.detail) from error
        if event.kind == CREATE:
            if bytes(event.id) != self._room:
                raise InvalidEvent(Reason.NOT_ALLOWED, "a second create event")
        elif event.topic != self._room:
            raise InvalidEvent(Reason.UNKNOWN_ROOM, "an event of another room")
        elif event.tail.deps is None or event.tail.control is None or event.tail.height is None:
            raise InvalidEvent(Reason.MALFORMED, "an event without dependencies, control heads or height")
        return Arrival(verified, source, hops, age_us)

    def head(self, unit: Unverified) -> EventId:
        """The id of a unit; `InvalidEvent` if it has none."""
        return unit_head(unit)

    def take(self, arrival: Arrival, now: float) -> tuple[list[IntakeEffect], list[Placed]]:
        """Give an event its place, now or when what it refers to has come."""
        event = arrival.event
        effects: list[IntakeEffect] = []
        placed: list[Placed] = []
        refs = refs_of(event)
        offered, more = self.order.offer(event.id, refs, self._size(arrival), arrival, arrival.source, now)
        effects += more
        if offered in (Offered.FULL, Offered.REPEATED):
            return effects, placed
        if event.kind in CONTROL_KINDS and not self._lane_in(arrival, now, effects, placed):
            if event.id in self._memory.rejected:
                self._place_all(self.order.settled(event.id), now, effects, placed)
            return effects, placed
        if offered is Offered.READY:
            self._place_all([arrival], now, effects, placed)
        elif self._is_ours(event) or self._control.knows(event.id):
            self._memory.keep_early(arrival.verified)
        return effects, placed

    def expired(self, event: EventId, now: float) -> tuple[list[IntakeEffect], list[Placed]]:
        """Nobody has this any more: what depends on it need not wait."""
        effects: list[IntakeEffect] = []
        placed: list[Placed] = []
        if not self._dag.knows(event) and not self._dag.is_settled(event):
            self._dag.settle(event, 0)
            self._memory.expire(event)
            ready = self.order.settled(event)
            effects.append(Record(Kind.EXPIRED, self._room, event, reason=Reason.RETENTION))
            self._place_all(ready, now, effects, placed)
        return effects, placed

    def recall(self, verified: Verified) -> None:
        """An event of the log, at the start."""
        event = verified.events[0]
        flag = self._memory.hidden.get(event.id)
        if event.kind in CONTROL_KINDS:
            self._control.add(event)
        for each in refs_of(event):
            # It stood before this once: refused and forgotten since, or gone and come back later.
            self._dag.settle(each, 0)
        self._enter(event, shown=flag != SOFT)

    def recall_early(self, verified: Verified, now: float) -> tuple[list[IntakeEffect], list[Placed]]:
        """An event that was kept early, at the start: it waits again."""
        return self.take(Arrival(verified, None, 0, 0), now)

    def _lane_in(self, first: Arrival, now: float, effects: list[IntakeEffect], placed: list[Placed]) -> bool:
        """Judge a control event if its control heads are known, and those that waited for it.

        Whether it may take its place. A loop and no recursion: who waits for whom is up to others.
        """
        may = True
        waiting = [first]
        while waiting:
            arrival = waiting.pop(0)
            event = arrival.event
            missing = [head for head in event.tail.control or () if self._is_missing(head)]
            if missing:
                self._lane.setdefault(missing[0], {})[event.id] = arrival
                continue
            judged = self._judge_control(arrival, effects, placed)
            may = judged if arrival is first else may
            waiting += self._lane.pop(event.id, {}).values()
            if arrival is first:
                continue
            if judged:
                self._memory.keep_early(arrival.verified)
            elif event.id in self._memory.rejected:
                self._place_all(self.order.settled(event.id), now, effects, placed)
        return may

    def _is_missing(self, head: EventId) -> bool:
        return bool(self._control.missing((head,))) and head not in self._memory.rejected

    def _judge_control(
        self, arrival: Arrival, effects: list[IntakeEffect], placed: list[Placed]
    ) -> bool:
        """A control event whose control heads are known; whether it is in the control DAG now."""
        event = arrival.event
        refusal = self._misplaced(event) or self._control.judge(event)
        doubt = None if refusal is not None else self._control.doubt(event)
        if doubt is not None and self._is_too_soft(event):
            self._shed(arrival, effects)
            return False
        refusal = refusal or self._control.add(event)
        if refusal is not None:
            self._reject(arrival, refusal, effects, placed)
        elif doubt is not None:
            self._doubted[event.id] = doubt
        return refusal is None

    def _place_all(
        self, ready: list[Arrival], now: float, effects: list[IntakeEffect], placed: list[Placed]
    ) -> None:
        """Everything here has all that it refers to; each may free others."""
        waiting = list(ready)
        while waiting:
            arrival = waiting.pop(0)
            if not self._dag.knows(arrival.event.id) and arrival.event.id not in self._memory.rejected:
                self._place(arrival, now, effects, placed)
            if self._dag.satisfies(arrival.event.id):
                waiting += self.order.settled(arrival.event.id)

    def _place(self, arrival: Arrival, now: float, effects: list[IntakeEffect], placed: list[Placed]) -> None:
        event = arrival.event
        refusal = self._wrong_height(event)
        doubt = self._doubted.pop(event.id, None)
        if event.kind not in CONTROL_KINDS and refusal is None:
            refusal = self._misplaced(event) or self._control.judge(event)
            if refusal is None:
                doubt = self._control.doubt(event, tuple(self._heads)) or self._from_future(event, now)
                if doubt is not None and self._is_too_soft(event):
                    self._shed(arrival, effects)
                    return
        if refusal is not None:
            self._reject(arrival, refusal, effects, placed)
            return
        late = self._dag.is_settled(event.id)
        flag = SOFT if doubt is not None else (LATE if late else None)
        position = self._memory.append(arrival.verified, flag, now)
        self._context.cards.keep(event.author, event.device)
        self._enter(event, shown=doubt is None)
        verdict = Verdict.ACCEPTED if doubt is None else Verdict.SOFT_FAILED
        placed.append(Placed(arrival, verdict, position, late, doubt))
        if doubt is not None:
            self._count_soft(event, doubt, arrival, effects)

    def _enter(self, event: Event, shown: bool) -> None:
        """Into the graph, the order of reconciliation, and the state."""
        mine = event.seq if self._is_ours(event) else None
        height = event.tail.height or 0
        if event.kind in CONTROL_KINDS:
            for head in event.tail.control or ():
                self._heads.pop(head, None)
            self._heads[event.id] = None
        self._dag.add(event.id, height, refs_of(event), shown, mine)
        self._ids.add(height, event.id)
        if event.tail.key is not None and event.kind not in CONTROL_KINDS:
            self._plain.add(event)

    def _misplaced(self, event: Event) -> Refusal | None:
        """Control heads that are none."""
        for each in event.tail.control or ():
            if self._control.is_rejected(each) or not self._control.knows(each):
                return Refusal(Reason.NOT_ALLOWED, "a control head that is refused or no control event")
        return None

    def _wrong_height(self, event: Event) -> Refusal | None:
        refs = refs_of(event)
        if any(self._dag.is_settled(each) and each not in self._memory.rejected for each in refs):
            return None  # Heights of what has expired are not known.
        heights = [self._memory.rejected.get(each) or self._dag.height(each) for each in refs]
        height = 1 + max(heights, default=-1)
        if event.tail.height != height:
            return Refusal(Reason.MALFORMED, f"its height is {event.tail.height}, not {height}")
        return None

    def _from_future(self, event: Event, now: float) -> Refusal | None:
        if event.time <= now * 1000 + self._config.future_ms:
            return None
        return Refusal(Reason.FUTURE_TIME, "its time is ahead of our clock")

    def _reject(
        self,
        arrival: Arrival,
        refusal: Refusal,
        effects: list[IntakeEffect],
        placed: list[Placed],
    ) -> None:
        event = arrival.event
        height = event.tail.height or 0
        self.rejected += 1
        self._memory.reject(event.id, height)
        self._dag.settle(event.id, height)
        if event.kind in CONTROL_KINDS:
            self._control.reject(event.id)
        effects.append(self._record(Kind.REJECTED, arrival, refusal.reason, refusal.rule))
        placed.append(Placed(arrival, Verdict.REJECTED, None, False, refusal))

    def _is_too_soft(self, event: Event) -> bool:
        """Whether an author has had its share of events that fail, and nobody builds on this one."""
        if self._soft.get(event.author, 0) < self._config.flood_soft:
            return False
        return event.id not in self._lane and not self.order.wants(event.id)

    def _shed(self, arrival: Arrival, effects: list[IntakeEffect]) -> None:
        self.shed[arrival.event.id] = None
        if len(self.shed) > self._config.rejected:
            del self.shed[next(iter(self.shed))]
        effects.append(self._record(Kind.DROPPED, arrival, Reason.FLOODING, arrival.event.kind))

    def _count_soft(
        self, event: Event, doubt: Refusal, arrival: Arrival, effects: list[IntakeEffect]
    ) -> None:
        self.soft_failed += 1
        self._soft[event.author] = self._soft.get(event.author, 0) + 1
        note = f"{event.kind}: {doubt.rule}"
        effects.append(self._record(Kind.REJECTED, arrival, Reason.SOFT_FAILED, note))

    def _record(self, kind: Kind, arrival: Arrival, reason: Reason | None, note: str) -> Record:
        event = arrival.event
        return Record(
            kind,
            self._room,
            event.id,
            event.device,
            event.seq,
            peer=arrival.source,
            hops=arrival.hops,
            reason=reason,
            note=note,
        )

    def _is_ours(self, event: Event) -> bool:
        return event.device == self._context.device and event.author == self._context.author

    @staticmethod
    def _size(arrival: Arrival) -> int:
        return sum(map(len, arrival.verified.unit.tails))
