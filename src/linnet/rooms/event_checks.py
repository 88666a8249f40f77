"""The intake of events at a member: it judges each arriving event and puts it in its place.

Control events are judged as soon as their control heads are known, whatever else is missing: authority is
defined by the control DAG alone, and a newcomer has that before any history. Every event, control events
included, takes its place in the room's order only after all that it refers to.

Soft failure: an event is allowed by the state at its own control heads, but not by the state that holds here
now. It is judged against those control events that do not follow it. For a control event with a place this is
certain, since its causes came before it. For one that was judged early it is not: it may well follow the
event, through causes that are still on their way. Such a control event takes no right away until it has its
place, even if others that name it as a control head have theirs. An early control event is judged once more
when it takes its place: it is shown only then, and more may be known.

When the revocation of a device has come early, events of that device wait for it a few seconds, unless it
waits for them. Its causes are on the way then; otherwise the order of arrival would decide whether somebody
who joins later is shown a thief's message. They wait no longer: the causes may be lost, or made up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from linnet.core.ids import AuthorId, EventId
from linnet.core.reasons import Reason
from linnet.delivery.causal_barriers import Barriers, Offered
from linnet.event.event import Event, Verified
from linnet.machine.outbox import Outbox
from linnet.rooms.auth.control_graph import ControlDag
from linnet.rooms.auth.event_auth import Refusal, allowed
from linnet.rooms.auth.room_state import Fact, StateKey, View, fact_of, revocation_key
from linnet.rooms.config import RoomsConfig
from linnet.rooms.event_positions import Arrival, Placed, Places, Verdict, causes_of
from linnet.rooms.event_types import CONTROL_KINDS, GROUP, RELAY, REVOCATION, Relay
from linnet.rooms.messages import RoomTimer
from linnet.rooms.room_store import SOFT
from linnet.trace.records import Kind, Record

PATIENCE = 5.0
"""Seconds after an early revocation in which events of its device wait for it: a few round trips."""


class WithheldDue(RoomTimer, frozen=True, gc=False):
    """Events of a revoked device have waited long enough for the revocation."""


class Intake:
    """Takes in the events of one room: judges them, and gives them their places."""

    def __init__(
        self,
        control: ControlDag,
        places: Places,
        order: Barriers[Arrival],
        config: RoomsConfig,
        out: Outbox,
    ) -> None:
        self._out = out
        self._config = config
        self._control = control
        self.places = places
        self._dag = places.dag
        self.order = order
        """The events that wait for all that they refer to."""
        self._lane = Lane(order)
        self.failure = SoftFailure(control, places, config)
        self._early_since: dict[EventId, float] = {}
        """When each early revocation came here."""
        self._withheld: dict[EventId, list[EventId]] = {}
        """Events of revoked devices, with the early revocations that they wait for."""
        self.rejected = self.soft_failed = 0

    def knows(self, event: EventId) -> bool:
        """Return whether an event is known, refused or waiting, so that a further copy can be ignored."""
        return self._dag.knows(event) or event in self.places.memory.rejected or self.order.waits(event)

    def take(self, arrival: Arrival, now: float) -> list[Placed]:
        """Place an event, now or when all that it refers to has come; return the events placed now."""
        event = arrival.event
        unknown = (head for head in event.tail.control or () if not self._control.knows(head))
        needs = dict.fromkeys((*causes_of(event), *unknown))
        offered, dropped = self.order.offer(event.id, needs, arrival.size, arrival, arrival.source, now)
        placed: list[Placed] = []
        if dropped:
            self.places.memory.overflowed = True  # This event found no room, or displaced another.
        is_full = offered is Offered.FULL
        if offered is Offered.REPEATED or (is_full and event.kind not in CONTROL_KINDS):
            return placed
        # A control event counts even if it finds no room to wait: a full queue must not keep out a ban.
        lane = [arrival] if event.kind in CONTROL_KINDS else []
        ready = [arrival] if offered is Offered.READY else self._release(event.id)
        if offered is Offered.WAITING and self.places.is_ours(event):
            self.places.keep_early(arrival)
        self._work(lane, ready, now, placed)
        return placed

    def offer_again(self, now: float) -> list[Placed]:
        """Take again the early events that found no room to wait, now that there is some."""
        placed: list[Placed] = []
        for verified in self.places.memory.early():
            if not self.order.waits(verified.head) and not self._dag.knows(verified.head):
                placed += self.take(Arrival(verified, None, 0, 0), now)
        return placed

    def expire(self, event: EventId, now: float) -> list[Placed]:
        """Let no event wait for one that nobody has any more; return the events placed now.

        A missing control head is waited for all the same: without it nothing can be judged.
        """
        placed: list[Placed] = []
        needing = self.order.needing(event)
        named = any(event in (each.event.tail.control or ()) for each in needing)
        if needing and not named and not self._dag.satisfies(event):
            self._dag.settle(event, 0)
            self.places.memory.expire(event)
            ready = self.order.settle(event)
            self._out.record(Record(Kind.EXPIRED, self._control.room, event, reason=Reason.RETENTION))
            self._work([], ready, now, placed)
        return placed

    def recall(self, verified: Verified) -> bool:
        """Place an event of the log at the start; return False if it builds on damaged control events.

        It then has to be taken again after the log was read, and waits for them as any event does.
        """
        event = verified.events[0]
        memory = self.places.memory
        if memory.is_future(event.id):
            memory.future[event.id] = None
        self._recall_heads(event)
        if self._control.missing(event.tail.control or ()) or any(c in memory.held for c in causes_of(event)):
            memory.held[event.id] = None
            return False
        if event.kind in CONTROL_KINDS:
            self._control.add(event)
        for each in causes_of(event):
            # The cause was known once: since then refused and forgotten, expired and returned, or damaged.
            self._dag.settle(each, 0)
            if each in memory.damaged:
                memory.followed[each] = None
        self.places.enter(event, shown=memory.is_shown(event.id))
        self.failure.placed(event, memory.hidden.get(event.id) == SOFT)
        return True

    def recall_early(self, verified: Verified, now: float) -> list[Placed]:
        """Let an event that was stored early wait again, at the start."""
        placed = self.take(Arrival(verified, None, 0, 0), now)
        event = verified.events[0]
        if self._control.knows(event.id) and not self._dag.knows(event.id):
            self.places.early[event.id] = event.tail.height or 0
        return placed

    def _recall_heads(self, event: Event) -> None:
        """Add the control heads of an event of the log that have no place yet, or got it later."""
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
                continue  # It builds on a damaged event.
            doubt = self._control.doubt(one)
            if doubt is not None:
                self.failure.judged(one, doubt)
            self._control.add(one)

    def _lacking(self, event: Event) -> list[Event]:
        heads = map(self.places.memory.event, self._control.missing(event.tail.control or ()))
        return [head for head in heads if head is not None]

    def _work(
        self,
        judge: Iterable[Arrival],
        ready: Iterable[Arrival],
        now: float,
        placed: list[Placed],
    ) -> None:
        """Judge control events, give events their places; each may free others. A loop and no recursion:
        peers decide how long a chain of waiting events is."""
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
                line += self._early(judged, now, placed)

    def _early(self, judged: list[Arrival], now: float, placed: list[Placed]) -> list[Arrival]:
        """Keep control events that count and have no place; return the events that need not wait for them.

        Events that only name an early control event as a head go on; otherwise a control event with a
        dependency that nobody has would stop the whole room.
        """
        early = [arrival for arrival in judged if not self._dag.knows(arrival.event.id)]
        judged.clear()
        for arrival in early:
            self.places.keep_early(arrival)
            if arrival.event.kind == REVOCATION:
                self._early_since[arrival.event.id] = now
            placed.append(Placed(arrival, Verdict.EARLY, None, False, None))
        return [each for arrival in early for each in self._spared(arrival.event.id)]

    def _spared(self, head: EventId) -> list[Arrival]:
        naming = (each.event for each in self.order.needing(head))
        ready = (self.order.spare(one.id, head) for one in naming if head not in causes_of(one))
        return [arrival for each in ready for arrival in each]

    def _judge_control(self, arrival: Arrival, placed: list[Placed]) -> bool:
        """Judge a control event, if its control heads are known; return whether it is new and allowed."""
        event = arrival.event
        if self._control.knows(event.id) or event.id in self.places.memory.rejected:
            return False
        refusal = self._misplaced(event)
        if refusal is None:
            missing = self._control.missing(event.tail.control or ())
            if missing:
                if not self._lane.wait(arrival, missing[0]):
                    # Its control head is said to be gone: it is fetched again when that has come.
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
            self.failure.judged(event, doubt)
        return True

    def _place(self, arrival: Arrival, now: float, placed: list[Placed]) -> None:
        """Append an event to the log, if it is allowed; all that it refers to is known or settled."""
        event = arrival.event
        if self._dag.knows(event.id) or event.id in self.places.memory.rejected:
            return
        doubt: Refusal | None = None
        if event.kind in CONTROL_KINDS:
            if not self._control.knows(event.id):
                return  # It was not added to the control DAG, and a record says why.
            doubt = (
                self._before(event) if self.places.memory.is_written(event.id) else self.failure.doubt(event)
            )
        else:
            if self._withhold(arrival, now):
                return
            refusal = self._misplaced(event) or self.places.wrong_height(event)
            if refusal is None and self._control.missing(event.tail.control or ()):
                self._record(Kind.DROPPED, arrival, Reason.MISSING_DEPENDENCY, "a control head")
                return
            refusal = refusal or self._control.judge(event)
            if refusal is not None:
                self._reject(arrival, refusal, placed)
                return
            doubt = (
                self._before(event) if self.places.memory.is_written(event.id) else self.failure.doubt(event)
            )
            if doubt is not None and self._is_too_soft(event):
                self._shed(arrival, Reason.FLOODING)
                return
        self._append(arrival, doubt, now, placed)

    def _withhold(self, arrival: Arrival, now: float) -> bool:
        """Let an event of a revoked device wait until the revocation has its place; return whether it does.

        If the revocation waits for the event, it builds on it, and the event is an earlier one.
        """
        event, places = arrival.event, self.places
        if not places.early or places.is_ours(event) or places.memory.is_written(event.id):
            return False
        revoked = (REVOCATION, revocation_key(event.author, event.device))
        early = [each for each in places.early if self._control.knows(each)]
        words = [each for each in early if self._control.fact(each).place == revoked]
        words = [word for word in words if 0.0 <= now - self._early_since.get(word, -PATIENCE) < PATIENCE]
        words = [word for word in words if event.id not in self.order.awaited_by(word)]
        # In a full waiting room all that builds on it would be lost with it, for ever if the room stays full.
        if not words or not self.order.fits(words, arrival.size):
            return False
        offered, _ = self.order.offer(event.id, words, arrival.size, arrival, arrival.source, now)
        if offered is not Offered.WAITING:
            return False  # The revocation was given up before it came: nothing can wait for it.
        if not self._withheld:
            self._out.set_timer(PATIENCE, WithheldDue(self._control.room))
        self._withheld[event.id] = words
        return True

    def end_waiting(self, now: float) -> list[Placed]:
        """Let withheld events wait no longer; return the events placed now."""
        withheld, self._withheld = self._withheld, {}
        released: list[Arrival] = []
        for id, words in withheld.items():
            for word in words:
                released += self.order.spare(id, word)
        early = self._early_since
        self._early_since = {word: at for word, at in early.items() if word in self.places.early}
        placed: list[Placed] = []
        self._work([], released, now, placed)
        if self._withheld:  # for a revocation that came since
            self._out.set_timer(PATIENCE, WithheldDue(self._control.room))
        return placed

    def _release(self, new: EventId) -> list[Arrival]:
        """Return the withheld events on which a revocation builds after all, as this waiting event shows.

        Only what is withheld can close a ring of events that wait for each other, here through the new one.
        """
        self._withheld = {id: words for id, words in self._withheld.items() if self.order.waits(id)}
        if not self._withheld or not self.order.wants(new):
            return []
        below = self.order.awaited_by(new)
        if new not in below:
            return []
        words = dict.fromkeys(word for words in self._withheld.values() for word in words if word in below)
        released: list[Arrival] = []
        for word in words:
            awaited = self.order.awaited_by(word)
            for id in self._withheld:
                if id in awaited:
                    released += self.order.spare(id, word)
        return released

    def _append(self, arrival: Arrival, doubt: Refusal | None, now: float, placed: list[Placed]) -> None:
        event = arrival.event
        placed.append(self.places.append(arrival, doubt, now))
        self.failure.placed(event, doubt is not None)
        if doubt is not None:
            self.soft_failed += 1
            self._record(Kind.REJECTED, arrival, Reason.SOFT_FAILED, f"{event.kind}: {doubt.rule}")

    def future(self) -> list[Event]:
        """Return the events with a place that an earlier version hid for their time."""
        memory = self.places.memory
        hidden = [memory.event(id) for id in memory.future if self._dag.knows(id)]
        return [event for event in hidden if event is not None]

    def cleared(self) -> list[tuple[int, Event]]:
        """Return the events that failed softly only by what is silenced now, by their positions.

        A stolen device bans a member in one half of a parted room. When the halves meet, messages of that
        member may come before the revocation that undoes the ban.
        """
        memory = self.places.memory
        self.failure.forget_doubts()
        hidden = [
            (position, event)
            for position, id in sorted((position, id) for id, position in memory.soft.items())
            if self._dag.knows(id) and (event := memory.event(id)) is not None
        ]
        return [(position, event) for position, event in hidden if self.failure.is_cleared(event)]

    def is_given_back(self, event: Event) -> bool:
        """Return whether an event that failed softly, and has its place again, is allowed by now."""
        return bool(self._control.silenced) and self.failure.is_cleared(event)

    def is_allowed_now(self, id: EventId) -> bool:
        """Return whether the current state allows a stored event."""
        event = self.places.memory.event(id)
        return event is not None and self._control.doubt(event) is None

    def reveal(self, event: Event) -> int:
        """Show an event that was hidden; return its position."""
        self.failure.forget(event)
        if event.kind != GROUP:  # It is no head, and no dependency.
            self._dag.show(event.id)
        return self.places.memory.reveal(event.id)

    def _before(self, event: Event) -> Refusal | None:
        """Return the soft failure of an event of the log from when it first took its place, if any."""
        if self.places.memory.is_shown(event.id) or self.places.memory.is_future(event.id):
            return None
        return Refusal(Reason.SOFT_FAILED, "as it was judged before")

    def _misplaced(self, event: Event) -> Refusal | None:
        """Return a refusal if a control head was refused or is no control event, else None."""
        for each in event.tail.control or ():
            if self._control.knows(each) or not self._dag.satisfies(each):
                continue
            if each not in self.places.memory.expired and each not in self.places.memory.damaged:
                return Refusal(Reason.NOT_ALLOWED, "a control head that is refused or no control event")
        return None

    def _reject(self, arrival: Arrival, refusal: Refusal, placed: list[Placed]) -> None:
        event = arrival.event
        height = event.tail.height or 0
        self.rejected += 1
        self._dag.forget(self.places.memory.reject(event.id, height))
        self._dag.settle(event.id, height)
        if event.kind in CONTROL_KINDS:
            self._control.reject(event.id)
        self._record(Kind.REJECTED, arrival, refusal.reason, refusal.rule)
        placed.append(Placed(arrival, Verdict.REJECTED, None, False, refusal))

    def _is_too_soft(self, event: Event) -> bool:
        """Return whether an author has used up its share of failing events, and nobody builds on this one."""
        if self.places.memory.is_written(event.id):
            return False
        return self.failure.is_frequent(event.author) and not self._is_needed(event)

    def _is_needed(self, event: Event) -> bool:
        """Return whether another event waits for this one, and so builds on it."""
        return event.id in self._lane or self.order.wants(event.id)

    def _shed(self, arrival: Arrival, reason: Reason) -> None:
        self.failure.let_go(arrival.event.id)
        self._record(Kind.DROPPED, arrival, reason, arrival.event.kind)

    def _record(self, kind: Kind, arrival: Arrival, reason: Reason | None, note: str) -> None:
        event = arrival.event
        whose = (self._control.room, event.id, event.device, event.seq)
        source, hops = arrival.source, arrival.hops
        self._out.record(Record(kind, *whose, peer=source, hops=hops, reason=reason, note=note))


_SLACK = 64
"""The most outdated entries in the lane before it is cleared of them."""


class Lane:
    """The control events of one room that wait to be judged, by the control head that each waits for.

    All of them wait in the room's barriers too, which bound them and ask for missing events. An event that
    the barriers drop for lack of room is dropped here as well.
    """

    def __init__(self, order: Barriers[Arrival]) -> None:
        self._order = order
        self._by_head: dict[EventId, dict[EventId, Arrival]] = {}
        self._size = 0

    def __contains__(self, head: object) -> bool:
        """Return whether an event waits for this head."""
        return head in self._by_head

    def wait(self, arrival: Arrival, head: EventId) -> bool:
        """Let an event wait for a head; return False if it does not wait in the barriers."""
        if not self._order.waits(arrival.event.id):
            return False
        waiting = self._by_head.setdefault(head, {})
        self._size += arrival.event.id not in waiting
        waiting[arrival.event.id] = arrival
        if self._size > len(self._order) + _SLACK:
            self._clear()
        return True

    def free(self, head: EventId) -> list[Arrival]:
        """Return the events that still wait for a head, which is now known or refused."""
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
    """Judges which events of one room fail softly, and counts the failures of each author."""

    def __init__(self, control: ControlDag, places: Places, config: RoomsConfig) -> None:
        self._config = config
        self._control = control
        self._places = places
        self._heads: dict[EventId, None] = {}
        """The heads of the control events that have their place."""

        self._doubts: dict[EventId, Refusal] = {}
        """The refusals of control events that failed when they were judged and have no place yet."""
        self._counts: dict[AuthorId, int] = {}
        """The number of failed events of each author."""
        self._failed: dict[EventId, tuple[EventId, ...]] = {}
        """The events that failed when they took their places, with the heads of those that had theirs."""
        self.shed: dict[EventId, None] = {}
        """The events that were one too many of their author, which are not fetched again."""

    def judged(self, control: Event, doubt: Refusal) -> None:
        """Note that a control event counts, but has failed softly before it has its place."""
        self._doubts[control.id] = doubt
        self._count(control.author, 1)

    def placed(self, event: Event, failed: bool) -> None:
        """Note that an event has its place: no event that it follows can come from now on."""
        was_counted = self._doubts.pop(event.id, None) is not None
        if failed != was_counted:
            self._count(event.author, 1 if failed else -1)
        if failed:
            self._failed[event.id] = tuple(self._heads)
        if event.kind in CONTROL_KINDS:
            for head in event.tail.control or ():
                self._heads.pop(head, None)
            self._heads[event.id] = None

    def forget_doubts(self) -> None:
        """Judge the events that have no place yet only when they take it: what they failed by may be gone."""
        for id in self._doubts:
            self._count(self._control.fact(id).sender, -1)
        self._doubts.clear()

    def is_cleared(self, event: Event) -> bool:
        """Return whether an event would not fail any more: what stood against it is silenced."""
        heads = (*self._failed.get(event.id, ()), *(event.tail.control or ()))
        return self._control.doubt_in_hindsight(event, heads) is None

    def forget(self, event: Event) -> None:
        """Forget that an event failed, if it did."""
        if self._failed.pop(event.id, None) is not None:
            self._count(event.author, -1)

    def is_frequent(self, author: AuthorId) -> bool:
        """Return whether so many events of an author failed that no more of them are kept."""
        return self._counts.get(author, 0) >= self._config.flood_soft

    def let_go(self, event: EventId) -> None:
        """Remember that an event was one too many; forget the oldest of these beyond the limit."""
        self.shed[event] = None
        if len(self.shed) > self._config.rejected:
            del self.shed[next(iter(self.shed))]

    def doubt(self, event: Event) -> Refusal | None:
        """Return the soft failure of an event that takes its place now, or None if there is none.

        The event is allowed at its control heads. If it is a control event that was early, more may be known
        now than when it was judged.
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
        refusal = allowed(fact, held) or self._hidden(fact, own, held)
        if refusal is None or self._control.doubt_in_hindsight(event, heads) is None:
            return None  # The revocation of what stands against it may have no place yet.
        return refusal

    def _count(self, author: AuthorId, more: int) -> None:
        self._counts[author] = self._counts.get(author, 0) + more

    def _beside(self, event: EventId) -> list[EventId]:
        """Return the latest placed control events that do not follow an event along control heads."""
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
        """Return a predicate for the control events that may count against an event.

        These are the events that it builds on, and those that cannot follow it, since followers are higher.
        A control event that claims too low a height harms only people whom its author may kick anyway.
        """
        named, height = event.tail.control or (), event.tail.height or 0

        def stands(other: EventId) -> bool:
            if other == event.id or self._control.is_before(event.id, other):
                return False
            claimed = self._places.early.get(other)
            return (
                self._places.dag.knows(other)
                or (claimed is not None and claimed <= height)
                or any(other == head or self._control.is_before(other, head) for head in named)
            )

        return stands

    def _hidden(self, fact: Fact, own: View, held: _Held) -> Refusal | None:
        """Return the refusal by an event that a passed-over one has replaced or won against, if any."""
        for other in self._control.between(fact.control) if held.passed_over else ():
            place = self._control.fact(other).place
            if place in held.passed_over and held.stands(other):
                refusal = allowed(fact, View(self._control, own.state.set(place, other)))
                if refusal is not None:
                    return refusal
        return None


class _Held:
    """The state an event is judged against: where an entry may follow the event, the one it knew itself."""

    def __init__(self, control: ControlDag, own: View, now: View, stands: Callable[[EventId], bool]) -> None:
        self.create = now.create
        self.stands = stands
        self.passed_over: dict[StateKey, None] = {}
        """The places whose entry may follow the event."""
        self._control = control
        self._own = own
        self._now = now

    def get(self, place: StateKey) -> Fact | None:
        """Return the event at a place, as it counts against the judged event."""
        found = self._now.get(place)
        if found is None or self.stands(found.id):
            return found
        self.passed_over[place] = None
        return self._own.get(place)

    def is_relay_person(self, person: AuthorId) -> bool:
        """Return whether an active relay belongs to this person."""
        words = [self.get((RELAY, key)) for key in self._control.relay_keys]
        relays = (word.content for word in words if word is not None)
        return any(isinstance(one, Relay) and one.active and one.person == person for one in relays)
