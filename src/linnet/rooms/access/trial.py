"""A state that is being rebuilt, event by event, as resolution does it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from linnet.core.ids import AuthorId, EventId
from linnet.rooms.access.facts import Fact, State, StateKey
from linnet.rooms.content import RELAY, Relay

Lookup = Callable[[EventId], Fact | None]


class Causality(Protocol):
    """What a room knows of its events beyond Matrix: which came after which."""

    def is_before(self, event: EventId, other: EventId) -> bool:
        """Whether the other follows the event."""

    def replaced_by(self, event: EventId) -> EventId | None:
        """What stood in the event's place where it came."""


class Trial:
    """The state while it is rebuilt, as one event at a time sees it: over its own auth events.

    With `Causality`, an event is held against nothing that came after it. Without, as in Matrix, whoever
    joined a public room that was closed later is out as soon as any stale head makes the join be judged
    again; see docs/adr/0010.
    """

    def __init__(self, create: Fact, lookup: Lookup, base: State | None, causality: Causality | None) -> None:
        self.create = create
        self._lookup = lookup
        self._base = base
        self._causality = causality
        self._put: dict[StateKey, Fact] = {}
        self._relays = {place: None for place in base or () if place[0] == RELAY}
        self._fact = create
        self._own: dict[StateKey, Fact] = {}

    def begin(self, fact: Fact, own: dict[StateKey, Fact]) -> None:
        """It is the turn of this event, with these auth events."""
        self._fact = fact
        self._own = own

    def is_overtaken(self) -> bool:
        """Whether what stands in its place follows the event already."""
        holder = self._put.get(self._fact.place)
        return (
            holder is not None
            and self._causality is not None
            and self._causality.is_before(self._fact.id, holder.id)
        )

    def put(self, fact: Fact) -> None:
        """The event is allowed."""
        self._put[fact.place] = fact
        if fact.kind == RELAY:
            self._relays[fact.place] = None

    def stands_at(self, place: StateKey) -> EventId | None:
        """What stands there so far, auth events aside."""
        fact = self._put.get(place)
        if fact is not None:
            return fact.id
        return None if self._base is None else self._base.get(place)

    def get(self, place: StateKey) -> Fact | None:
        """What the rules find there."""
        standing = self.stands_at(place)
        fact = None if standing is None else self._not_after(standing)
        return self._own.get(place) if fact is None else fact

    def is_relay_person(self, person: AuthorId) -> bool:
        """Whether an active relay is this person's."""
        relays = (fact.content for place in self._relays if (fact := self.get(place)) is not None)
        return any(isinstance(one, Relay) and one.active and one.person == person for one in relays)

    def _not_after(self, standing: EventId) -> Fact | None:
        """The last version of what stands there that does not follow the event.

        Not simply what the event itself knew: it may have been overruled by one version, and the next
        knew both.
        """
        version: EventId | None = standing
        if self._causality is not None:
            while version is not None and self._causality.is_before(self._fact.id, version):
                version = self._causality.replaced_by(version)
        return None if version is None else self._lookup(version)

    def over(self, base: State, conflicted: Iterable[StateKey]) -> State:
        """The result: a state with its conflicts settled. What was never in conflict stays."""
        settled = dict.fromkeys(conflicted)
        result = base.mutate()
        for place in settled:
            if place not in self._put:
                result.pop(place, None)
        for place, fact in self._put.items():
            if place in settled or place not in base:
                result[place] = fact.id
        return result.finish()
