"""Soft failure: an event is allowed where it was said, and not by what holds here now.

An event is held against those control events that do not follow it. Of one that has its place that is
certain, since its causes came before it. Of one that was judged early it is not: it may well follow the
event, by causes that are still on their way. Such a one takes no right away until it has its place, even
where others that name it as a control head have theirs. A control event that was early is asked once more
when it takes its place: it is shown only then, and more may be known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from linnet.core.ids import AuthorId, EventId
from linnet.delivery.dag import Dag
from linnet.event.event import Event
from linnet.rooms.access.control_dag import ControlDag
from linnet.rooms.access.facts import Fact, StateKey, fact_of
from linnet.rooms.access.rules import allowed
from linnet.rooms.access.verdict import Refusal
from linnet.rooms.access.view import View
from linnet.rooms.config import RoomsConfig
from linnet.rooms.content import CONTROL_KINDS, RELAY, Relay


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
