"""What is true of a room's events, worked out slowly and by itself.

Judges a run from outside: it has every event at once and asks the room's rules, but nothing that a node
remembers. Its causality is a plain closure over all references.
"""

from __future__ import annotations

from collections.abc import Iterable

from linnet.core.errors import InvalidEvent
from linnet.core.ids import AuthorId, EventId
from linnet.event.event import Event
from linnet.rooms.access.control_dag import ControlDag
from linnet.rooms.access.facts import State, fact_of
from linnet.rooms.access.rules import allowed
from linnet.rooms.content import CONTROL_KINDS, CREATE, MEMBER, POWER, Member, Membership, member_key

_REMOVED = (Membership.LEAVE, Membership.BAN)


class Oracle:
    """Everything that was ever said in one room."""

    def __init__(self, events: Iterable[Event]) -> None:
        ordered = sorted(events, key=lambda event: (event.tail.height or 0, event.id))
        self.events: dict[EventId, Event] = {event.id: event for event in ordered}
        """All events, causes first."""
        create = next(event for event in ordered if event.kind == CREATE)
        self.control = ControlDag(create)
        self._past: dict[EventId, frozenset[EventId]] = {}
        self._shown_before: dict[EventId, frozenset[EventId]] = {}
        """The same, but for control heads as such: these count before their own causes have come."""
        self._states: dict[frozenset[EventId], State] = {}
        for event in self.events.values():
            self._past[event.id] = _closure(references(event), self._past)
            self._shown_before[event.id] = _closure(causes(event), self._shown_before)
            if event.kind in CONTROL_KINDS and event.id != create.id and not self.missing(event):
                self.control.add(event)

    def missing(self, event: Event) -> list[EventId]:
        """Control heads of an event that nobody has."""
        return [head for head in event.tail.control or () if head not in self.events]

    def is_before(self, event: EventId, other: EventId) -> bool:
        """Whether the other refers to the event, in however many steps."""
        return event in self._past[other]

    def past(self, event: EventId) -> frozenset[EventId]:
        """All that an event refers to, in however many steps."""
        return self._past[event]

    def is_allowed(self, event: Event) -> bool:
        """Whether the state at its own control heads allows an event."""
        return not self.missing(event) and self.control.judge(event) is None

    def joined_at(self, event: Event) -> tuple[AuthorId, ...]:
        """Who was in the room at the control heads of an event."""
        return self.control.view(self.control.state_at(event.tail.control or ())).joined()

    def joined(self) -> tuple[AuthorId, ...]:
        """Who is in the room when everybody knows everything."""
        return self.control.view().joined()

    def state(self) -> dict[tuple[str, str], EventId]:
        """The control state when everybody knows everything."""
        return dict(self.control.current)

    def is_endangered(self, event: Event) -> bool:
        """Whether something that the author did not know takes the right to this event away.

        That is a membership of the author or levels that neither come before the event nor follow it: whoever
        took the right away had not been shown the event, even if a control event that it names had.
        """
        fact, state = fact_of(event), self.control.state_at(event.tail.control or ())
        for other in self.events.values():
            if other.id == event.id or not self._takes_away(other, event.author):
                continue
            if self.is_before(other.id, event.id) or event.id in self._shown_before[other.id]:
                continue
            place = self.control.fact(other.id).place
            if allowed(fact, self.control.view(state.set(place, other.id))) is not None:
                return True
        return False

    def _takes_away(self, event: Event, person: AuthorId) -> bool:
        """Whether a control event removes somebody, or changes levels."""
        if not self.control.knows(event.id):
            return False
        if event.kind == POWER:
            return True
        if event.kind != MEMBER or event.tail.key != member_key(person):
            return False
        content = self.control.fact(event.id).content
        return isinstance(content, Member) and content.membership in _REMOVED

    def allows(self, held: frozenset[EventId], event: Event) -> bool:
        """Whether a node that holds these control events may take an event, as far as it can know.

        Whatever the event names as its control heads, it must hold as well.
        """
        known = held.union(event.tail.control or ())
        state = self._states.get(known)
        if state is None:
            named = {head for one in known for head in self.events[one].tail.control or ()}
            state = self._states[known] = self.control.state_at([one for one in known if one not in named])
        try:
            return allowed(fact_of(event), self.control.view(state)) is None
        except InvalidEvent:
            return False


def _closure(parents: Iterable[EventId], known: dict[EventId, frozenset[EventId]]) -> frozenset[EventId]:
    found: set[EventId] = set()
    for parent in parents:
        found |= {parent, *known.get(parent, ())}
    return frozenset(found)


def references(event: Event) -> tuple[EventId, ...]:
    """All that an event names."""
    tail = event.tail
    prev = () if event.prev is None else (event.prev,)
    return (*(tail.deps or ()), *(tail.concurrent or ()), *(tail.control or ()), *prev)


def causes(event: Event) -> tuple[EventId, ...]:
    """What has to be shown before an event."""
    prev = () if event.prev is None else (event.prev,)
    return (*(event.tail.deps or ()), *(event.tail.concurrent or ()), *prev)
