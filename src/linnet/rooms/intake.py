"""What becomes of an event that reaches a member: checked, judged, put in its place.

Control events are judged as soon as their control heads are known, whatever else is missing: authority is
defined by the control DAG alone, and a newcomer has that before any history. Everything, control events
too, takes its place in the room's order only after all that it refers to.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.barriers import Barriers, Offered
from linnet.delivery.context import Context
from linnet.delivery.dag import Dag
from linnet.delivery.sorted_ids import SortedIds
from linnet.event.event import Event, Unverified, Verified
from linnet.event.signing import unit_head
from linnet.machine.outbox import Outbox
from linnet.rooms.access.control_dag import ControlDag
from linnet.rooms.access.plain import PlainState
from linnet.rooms.access.verdict import Refusal
from linnet.rooms.arrival import Arrival, Placed, Verdict, checked
from linnet.rooms.authoring import causes_of
from linnet.rooms.config import RoomsConfig
from linnet.rooms.content import CONTROL_KINDS
from linnet.rooms.event_positions import Places
from linnet.rooms.lane import Lane
from linnet.rooms.memory import SOFT, RoomMemory
from linnet.rooms.soft_failure import SoftFailure
from linnet.trace.records import Kind, Record


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
        out: Outbox,
    ) -> None:
        self._room = room
        self._out = out
        self._context = context
        self._config = config
        self._control = control
        self._dag = dag
        self._memory = memory
        self.order = order
        """Events that wait for all that they refer to."""
        self._lane = Lane(order)
        self.places = Places(context, dag, ids, plain, memory)
        self.early = self.places.early
        self._failure = SoftFailure(control, dag, self.early, config)
        self.shed = self._failure.shed
        self.rejected = 0
        self.soft_failed = 0

    def knows(self, event: EventId) -> bool:
        """Whether nothing is to be done when this event comes once more."""
        return self._dag.knows(event) or event in self._memory.rejected or self.order.waits(event)

    def check(self, unit: Unverified, source: PeerId, hops: int, age_us: int) -> Arrival:
        """A unit as an event whose signature holds; `InvalidEvent` says what is wrong."""
        return Arrival(checked(unit, self._room, self._context), source, hops, age_us)

    def head(self, unit: Unverified) -> EventId:
        """The id of a unit; `InvalidEvent` if it has none."""
        return unit_head(unit)

    def take(self, arrival: Arrival, now: float) -> list[Placed]:
        """Give an event its place, now or when what it refers to has come; all that have theirs now."""
        event = arrival.event
        unknown = (head for head in event.tail.control or () if not self._control.knows(head))
        needs = dict.fromkeys((*causes_of(event), *unknown))
        offered, dropped = self.order.offer(event.id, needs, arrival.size, arrival, arrival.source, now)
        placed: list[Placed] = []
        if dropped:
            self._memory.overflowed = True  # This one had no room, or another went for it.
        is_full = offered is Offered.FULL
        if offered is Offered.REPEATED or (is_full and event.kind not in CONTROL_KINDS):
            return placed
        # A control event counts though it has no room to wait in: that must not keep out a ban.
        lane = [arrival] if event.kind in CONTROL_KINDS else []
        ready = [arrival] if offered is Offered.READY else []
        if offered is Offered.WAITING and self.places.is_ours(event):
            self.places.keep_early(arrival)
        self._work(lane, ready, now, placed)
        return placed

    def offer_again(self, now: float) -> list[Placed]:
        """Take events again that count and had no room to wait in, now that there is some."""
        placed: list[Placed] = []
        for verified in self._memory.early():
            if not self.order.waits(verified.head) and not self._dag.knows(verified.head):
                placed += self.take(Arrival(verified, None, 0, 0), now)
        return placed

    def expire(self, event: EventId, now: float) -> list[Placed]:
        """Let nothing wait for an event that nobody has any more.

        What is named as a control head is waited for all the same: without it nothing can be judged.
        """
        placed: list[Placed] = []
        needing = self.order.needing(event)
        named = any(event in (each.event.tail.control or ()) for each in needing)
        if needing and not named and not self._dag.satisfies(event):
            self._dag.settle(event, 0)
            self._memory.expire(event)
            ready = self.order.settle(event)
            self._out.record(Record(Kind.EXPIRED, self._room, event, reason=Reason.RETENTION))
            self._work([], ready, now, placed)
        return placed

    def recall(self, verified: Verified) -> bool:
        """An event of the log, at the start; False if it builds on control events that are damaged.

        Then it has to be taken again, after the log was read: it waits for them as any event does.
        """
        event = verified.events[0]
        memory = self._memory
        if memory.is_future(event.id):
            memory.future[event.id] = event.time
        self._recall_heads(event)
        if self._control.missing(event.tail.control or ()) or any(c in memory.held for c in causes_of(event)):
            memory.held[event.id] = None
            return False
        if event.kind in CONTROL_KINDS:
            self._control.add(event)
        for each in causes_of(event):
            # It stood before this once: refused and forgotten since, gone and come back later, or damaged.
            self._dag.settle(each, 0)
            if each in memory.damaged:
                memory.followed[each] = None
        self.places.enter(event, shown=memory.is_shown(event.id))
        self._failure.placed(event, memory.hidden.get(event.id) == SOFT)
        return True

    def recall_early(self, verified: Verified, now: float) -> list[Placed]:
        """Let an event that was kept early wait again, at the start."""
        placed = self.take(Arrival(verified, None, 0, 0), now)
        event = verified.events[0]
        if self._control.knows(event.id) and not self._dag.knows(event.id):
            self.early[event.id] = event.tail.height or 0
        return placed

    def _recall_heads(self, event: Event) -> None:
        """Control heads of an event of the log, if these got their places later or have none yet."""
        stack = self._lacking(event)
        seen: set[EventId] = set()
        while stack:
            lacking = [each for each in self._lacking(stack[-1]) if each.id not in seen]
            if lacking:
                stack += lacking
                continue
            one = stack.pop()
            seen.add(one.id)
            if self._control.missing(one.tail.control or ()):
                continue  # It builds on what is damaged.
            doubt = self._control.doubt(one)
            if doubt is not None:
                self._failure.judged(one, doubt)
            self._control.add(one)

    def _lacking(self, event: Event) -> list[Event]:
        heads = map(self._memory.event, self._control.missing(event.tail.control or ()))
        return [head for head in heads if head is not None]

    def _work(
        self,
        judge: Iterable[Arrival],
        ready: Iterable[Arrival],
        now: float,
        placed: list[Placed],
    ) -> None:
        """Judge control events, give events their places; each may free others. A loop and no recursion:
        who waits for whom is up to others."""
        lane, line = deque(judge), deque(ready)
        judged: list[Arrival] = []
        while lane or line:
            arrival = lane.popleft() if lane else None
            if arrival is not None:
                if self._judge_control(arrival, placed):
                    judged.append(arrival)
            else:
                arrival = line.popleft()
                self._place(arrival, now, placed)
            done = arrival.event.id
            if self._control.knows(done) or self._dag.satisfies(done):
                lane += self._lane.free(done)
            if self._dag.satisfies(done):
                line += self.order.settle(done)
            if not lane and not line:
                line += self._early(judged, placed)

    def _early(self, judged: list[Arrival], placed: list[Placed]) -> list[Arrival]:
        """Control events that count and have no place; those that only name them wait for them no more.

        Else whoever gives a control event a dependency that nobody has would stop the whole room.
        """
        early = [arrival for arrival in judged if not self._dag.knows(arrival.event.id)]
        judged.clear()
        for arrival in early:
            self.places.keep_early(arrival)
            placed.append(Placed(arrival, Verdict.EARLY, None, False, None))
        return [each for arrival in early for each in self._spared(arrival.event.id)]

    def _spared(self, head: EventId) -> list[Arrival]:
        naming = (each.event for each in self.order.needing(head))
        ready = (self.order.spare(one.id, head) for one in naming if head not in causes_of(one))
        return [arrival for each in ready for arrival in each]

    def _judge_control(self, arrival: Arrival, placed: list[Placed]) -> bool:
        """Judge a control event, if its control heads are known; whether it is new to the control DAG."""
        event = arrival.event
        if self._control.knows(event.id) or event.id in self._memory.rejected:
            return False
        refusal = self._misplaced(event)
        if refusal is None:
            missing = self._control.missing(event.tail.control or ())
            if missing:
                if not self._lane.wait(arrival, missing[0]):
                    # Its control head is said to be gone: it comes again when that has come.
                    self._record(Kind.DROPPED, arrival, Reason.MISSING_DEPENDENCY, "a control head")
                return False
            refusal = self._control.judge(event)
        doubt = None if refusal is not None else self._control.doubt(event)
        if doubt is not None and self._is_too_soft(event):
            self._shed(arrival, Reason.FLOODING)
            return False
        excess = None if refusal is not None else self._control.excess(event, self._config.max_control)
        if excess is Reason.QUOTA or (excess is not None and not self._is_needed(event)):
            self._shed(arrival, excess)
            return False
        refusal = refusal or self._control.add(event)
        if refusal is not None:
            self._reject(arrival, refusal, placed)
            return False
        if doubt is not None:
            self._failure.judged(event, doubt)
        return True

    def _place(self, arrival: Arrival, now: float, placed: list[Placed]) -> None:
        """Everything that it refers to is known or settled: into the log with it, if it is allowed."""
        event = arrival.event
        if self._dag.knows(event.id) or event.id in self._memory.rejected:
            return
        doubt: Refusal | None = None
        if event.kind in CONTROL_KINDS:
            if not self._control.knows(event.id):
                return  # It was not taken into the control DAG, and a record says why.
            doubt = self._before(event) if self._memory.is_written(event.id) else self._failure.doubt(event)
        else:
            refusal = self._misplaced(event) or self.places.wrong_height(event)
            if refusal is None and self._control.missing(event.tail.control or ()):
                self._record(Kind.DROPPED, arrival, Reason.MISSING_DEPENDENCY, "a control head")
                return
            refusal = refusal or self._control.judge(event)
            if refusal is not None:
                self._reject(arrival, refusal, placed)
                return
            if self._memory.is_written(event.id):
                doubt = self._before(event)
            else:
                doubt = self._failure.doubt(event) or self._from_future(event, now)
            # What our clock says may be wrong of everybody, and is no share of anyone's.
            is_future = doubt is not None and doubt.reason is Reason.FUTURE_TIME
            if doubt is not None and not is_future and self._is_too_soft(event):
                self._shed(arrival, Reason.FLOODING)
                return
        self._append(arrival, doubt, now, placed)

    def _append(self, arrival: Arrival, doubt: Refusal | None, now: float, placed: list[Placed]) -> None:
        event = arrival.event
        placed.append(self.places.append(arrival, doubt, now))
        is_future = doubt is not None and doubt.reason is Reason.FUTURE_TIME
        self._failure.placed(event, doubt is not None and not is_future)
        if doubt is not None:
            self.soft_failed += not is_future
            note = f"{event.kind}: {doubt.rule}"
            reason = Reason.FUTURE_TIME if is_future else Reason.SOFT_FAILED
            self._record(Kind.REJECTED, arrival, reason, note)

    def reveal_due(self, now: float) -> list[tuple[Event, int]]:
        """Show events whose time has come that were hidden for it; they, with their positions."""
        memory = self._memory
        latest = now * 1000 + self._config.future_ms
        found: list[tuple[Event, int]] = []
        for id in [id for id, time in memory.future.items() if time <= latest and self._dag.knows(id)]:
            event = memory.event(id)
            if event is not None:
                found.append((event, memory.reveal(id)))
                self._dag.show(id)
        return found

    def _before(self, event: Event) -> Refusal | None:
        """What was held against an event of the log when it took its place first."""
        if self._memory.is_shown(event.id):
            return None
        if self._memory.is_future(event.id):
            return Refusal(Reason.FUTURE_TIME, "its time was ahead of our clock")
        return Refusal(Reason.SOFT_FAILED, "as it was judged before")

    def _misplaced(self, event: Event) -> Refusal | None:
        """Control heads that are refused, or none at all."""
        for each in event.tail.control or ():
            if self._control.knows(each) or not self._dag.satisfies(each):
                continue
            if each not in self._memory.expired and each not in self._memory.damaged:
                return Refusal(Reason.NOT_ALLOWED, "a control head that is refused or no control event")
        return None

    def _from_future(self, event: Event, now: float) -> Refusal | None:
        if event.time <= now * 1000 + self._config.future_ms:
            return None
        return Refusal(Reason.FUTURE_TIME, "its time is ahead of our clock")

    def _reject(self, arrival: Arrival, refusal: Refusal, placed: list[Placed]) -> None:
        event = arrival.event
        height = event.tail.height or 0
        self.rejected += 1
        self._dag.forget(self._memory.reject(event.id, height))
        self._dag.settle(event.id, height)
        if event.kind in CONTROL_KINDS:
            self._control.reject(event.id)
        self._record(Kind.REJECTED, arrival, refusal.reason, refusal.rule)
        placed.append(Placed(arrival, Verdict.REJECTED, None, False, refusal))

    def _is_too_soft(self, event: Event) -> bool:
        """Whether an author has had its share of events that fail, and nobody builds on this one."""
        if self._memory.is_written(event.id):
            return False
        return self._failure.is_frequent(event.author) and not self._is_needed(event)

    def _is_needed(self, event: Event) -> bool:
        """Whether something waits for an event, and so somebody builds on it."""
        return event.id in self._lane or self.order.wants(event.id)

    def _shed(self, arrival: Arrival, reason: Reason) -> None:
        self._failure.let_go(arrival.event.id)
        self._record(Kind.DROPPED, arrival, reason, arrival.event.kind)

    def _record(self, kind: Kind, arrival: Arrival, reason: Reason | None, note: str) -> None:
        event = arrival.event
        whose = (self._room, event.id, event.device, event.seq)
        source, hops = arrival.source, arrival.hops
        self._out.record(Record(kind, *whose, peer=source, hops=hops, reason=reason, note=note))
