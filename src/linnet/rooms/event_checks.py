"""What becomes of an event that reaches a member: checked, judged, put in its place.

Control events are judged as soon as their control heads are known, whatever else is missing: authority is
defined by the control DAG alone, and a newcomer has that before any history. Everything, control events
too, takes its place in the room's order only after all that it refers to.

Soft failure: an event is allowed where it was said, and not by what holds here now. It is held against
those control events that do not follow it. Of one that has its place that is certain, since its causes came
before it. Of one that was judged early it is not: it may well follow the event, by causes that are still on
their way. Such a one takes no right away until it has its place, even where others that name it as a control
head have theirs. A control event that was early is asked once more when it takes its place: it is shown only
then, and more may be known.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping

from linnet.core.ids import AuthorId, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.barriers import Barriers, Offered
from linnet.delivery.context import Context
from linnet.delivery.dag import Dag
from linnet.delivery.sorted_ids import SortedIds
from linnet.event.event import Event, Unverified, Verified
from linnet.event.signing import unit_head
from linnet.machine.outbox import Outbox
from linnet.rooms.access.control_dag import ControlDag
from linnet.rooms.access.facts import Fact, StateKey, fact_of
from linnet.rooms.access.plain import PlainState
from linnet.rooms.access.rules import allowed
from linnet.rooms.access.verdict import Refusal
from linnet.rooms.access.view import View
from linnet.rooms.arrival import Arrival, Placed, Verdict, checked
from linnet.rooms.config import RoomsConfig
from linnet.rooms.content import CONTROL_KINDS, RELAY, Relay
from linnet.rooms.event_builder import causes_of
from linnet.rooms.event_positions import Places
from linnet.rooms.room_store import SOFT, RoomMemory
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


_SLACK = 64
"""Events that may be here and wait no more, before the lane is cleared of them."""


class Lane:
    """Those of one room, by the head that each waits for.

    All of them wait in the room's barriers too, which bound them and ask for what is missing. Whatever these
    let go, because there was no room to wait in, is let go here as well.
    """

    def __init__(self, order: Barriers[Arrival]) -> None:
        self._order = order
        self._by_head: dict[EventId, dict[EventId, Arrival]] = {}
        self._size = 0

    def __len__(self) -> int:
        """How many are here, some of which may wait no more."""
        return self._size

    def __contains__(self, head: object) -> bool:
        """Whether something waits for this head."""
        return head in self._by_head

    def wait(self, arrival: Arrival, head: EventId) -> bool:
        """Let an event wait for a head; False if it does not wait in the barriers."""
        if not self._order.waits(arrival.event.id):
            return False
        waiting = self._by_head.setdefault(head, {})
        self._size += arrival.event.id not in waiting
        waiting[arrival.event.id] = arrival
        if self._size > len(self._order) + _SLACK:
            self._clear()
        return True

    def free(self, head: EventId) -> list[Arrival]:
        """A head is known, or refused: who waited for it, and waits still."""
        freed = self._by_head.pop(head, {})
        self._size -= len(freed)
        return [each for id, each in freed.items() if self._order.waits(id)]

    def _clear(self) -> None:
        waits = self._order.waits
        for head, waiting in list(self._by_head.items()):
            left = {id: each for id, each in waiting.items() if waits(id)}
            self._size -= len(waiting) - len(left)
            if left:
                self._by_head[head] = left
            else:
                del self._by_head[head]


class SoftFailure:
    """What is held against the events of one room, and what failed of whom."""

    def __init__(
        self, control: ControlDag, dag: Dag, early: Mapping[EventId, int], config: RoomsConfig
    ) -> None:
        self._config = config
        self._control = control
        self._dag = dag
        self._early = early
        """Heights that control events claim which count and have no place yet."""
        self._heads: dict[EventId, None] = {}
        """Heads of the control events that have their place."""

        self._doubts: dict[EventId, Refusal] = {}
        """Of control events that had failed when they were judged, and have no place yet."""
        self._counts: dict[AuthorId, int] = {}
        """Events that failed, by author."""
        self.shed: dict[EventId, None] = {}
        """Events that were one too many of their author, and are not to be fetched again."""

    def judged(self, control: Event, doubt: Refusal) -> None:
        """A control event counts, and has failed before it has its place."""
        self._doubts[control.id] = doubt
        self._count(control.author, 1)

    def placed(self, event: Event, failed: bool) -> None:
        """An event has its place: from now on nothing can come that it follows."""
        was_counted = self._doubts.pop(event.id, None) is not None
        if failed != was_counted:
            self._count(event.author, 1 if failed else -1)
        if event.kind in CONTROL_KINDS:
            for head in event.tail.control or ():
                self._heads.pop(head, None)
            self._heads[event.id] = None

    def is_frequent(self, author: AuthorId) -> bool:
        """Whether so much of an author has failed that nothing more of it is kept for its own sake."""
        return self._counts.get(author, 0) >= self._config.flood_soft

    def let_go(self, event: EventId) -> None:
        """Remember that an event was one too many; the oldest of these is forgotten in its time."""
        self.shed[event] = None
        if len(self.shed) > self._config.rejected:
            del self.shed[next(iter(self.shed))]

    def doubt(self, event: Event) -> Refusal | None:
        """What stands against an event that takes its place now, and is allowed at its control heads.

        Of a control event that was early more may be known than when it was judged.
        """
        known = self._doubts.get(event.id)
        if known is not None:
            return known
        named = event.tail.control or ()
        heads = (*self._beside(event.id), *named)
        if self._control.doubt(event, heads) is None:
            return None
        fact = fact_of(event)
        own = self._control.view(self._control.state_at(named))
        now = self._control.view(self._control.state_at(heads))
        held = _Held(self._control, own, now, self._stands(event))
        return allowed(fact, held) or self._hidden(fact, own, held)

    def _count(self, author: AuthorId, more: int) -> None:
        self._counts[author] = self._counts.get(author, 0) + more

    def _beside(self, event: EventId) -> list[EventId]:
        """The latest control events that have their place and do not follow an event along control heads."""
        found: list[EventId] = []
        stack, seen = list(self._heads), dict.fromkeys(self._heads)
        while stack:
            one = stack.pop()
            if one != event and not self._control.is_before(event, one):
                found.append(one)
                continue
            below = [head for head in self._control.fact(one).control if head not in seen]
            seen.update(dict.fromkeys(below))
            stack += below
        return found

    def _stands(self, event: Event) -> Callable[[EventId], bool]:
        """Tells which control events may stand against an event: what it builds on, what cannot follow it.

        Whatever follows it is higher. A control event that claims to be lower than it is harms nobody but
        those whom its author may put out.
        """
        named, height = event.tail.control or (), event.tail.height or 0

        def stands(other: EventId) -> bool:
            if other == event.id or self._control.is_before(event.id, other):
                return False
            claimed = self._early.get(other)
            return (
                self._dag.knows(other)
                or (claimed is not None and claimed <= height)
                or any(other == head or self._control.is_before(other, head) for head in named)
            )

        return stands

    def _hidden(self, fact: Fact, own: View, held: _Held) -> Refusal | None:
        """What stands in the shadow of those that were passed over: they replaced it, or won against it."""
        for other in self._control.between(fact.control) if held.passed_over else ():
            place = self._control.fact(other).place
            if place in held.passed_over and held.stands(other):
                refusal = allowed(fact, View(self._control, own.state.set(place, other)))
                if refusal is not None:
                    return refusal
        return None


class _Held:
    """A state that an event is held against: where something stands that may follow it, what itself knew."""

    def __init__(self, control: ControlDag, own: View, now: View, stands: Callable[[EventId], bool]) -> None:
        self.create = now.create
        self.stands = stands
        self.passed_over: dict[StateKey, None] = {}
        """Places where something stands that may follow the event."""
        self._control = control
        self._own = own
        self._now = now

    def get(self, place: StateKey) -> Fact | None:
        """The event that stands there."""
        found = self._now.get(place)
        if found is None or self.stands(found.id):
            return found
        self.passed_over[place] = None
        return self._own.get(place)

    def is_relay_person(self, person: AuthorId) -> bool:
        """Whether an active relay is this person's."""
        words = [self.get((RELAY, key)) for key in self._control.relay_keys]
        relays = (word.content for word in words if word is not None)
        return any(isinstance(one, Relay) and one.active and one.person == person for one in relays)
