"""State resolution word for word as the Matrix specification has it: slow, with sets, for comparison.

It shares the authorisation rules with what is tested, and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from linnet.core.ids import AuthorId, EventId
from linnet.rooms.auth.event_auth import allowed
from linnet.rooms.auth.room_state import POWER_KEY, Fact, Levels, StateKey, Version
from linnet.rooms.event_types import Member, Membership, Power, Relay, member_key

Resolved = dict[StateKey, EventId]


class Specified:
    """The events of a room and what authorises them."""

    def __init__(
        self,
        facts: dict[EventId, Fact],
        auth: dict[EventId, tuple[EventId, ...]],
        create: Fact,
        version: Version,
        inclusive: bool = True,
    ) -> None:
        self.facts = facts
        self.auth = auth
        self.create = create
        self.version = version
        self.inclusive = inclusive
        """Whether a state's own events belong to its full auth chain."""

    def resolve(self, sets: Sequence[Resolved]) -> Resolved:
        keys = {key for state in sets for key in state}
        unconflicted = {
            key: sets[0][key]
            for key in keys
            if all(key in state and state[key] == sets[0].get(key) for state in sets)
        }
        conflicted = {state[key] for state in sets for key in state if key not in unconflicted}
        if not conflicted:
            return unconflicted
        full = self.full_conflicted_set(sets, conflicted)
        powers = {event for event in full if self.is_power_event(self.facts[event])}
        control = {event for event in full if event in powers or any(event in self.chain(p) for p in powers)}
        start = {} if self.version is Version.V12 else dict(unconflicted)
        partial = self.iterative_auth(self.power_ordering(control), start)
        rest = sorted(full - control, key=lambda event: self.mainline_rank(event, partial.get(POWER_KEY)))
        return {**self.iterative_auth(rest, partial), **unconflicted}

    def full_conflicted_set(self, sets: Sequence[Resolved], conflicted: set[EventId]) -> set[EventId]:
        chains = [self.full_chain(state) for state in sets]
        difference = chains[0].union(*chains) - chains[0].intersection(*chains)
        between: set[EventId] = set()
        if self.version is Version.V12:
            for event in self.facts:
                above = event in conflicted or any(event in self.chain(one) for one in conflicted)
                below = event in conflicted or bool(self.chain(event) & conflicted)
                if above and below:
                    between.add(event)
        return (conflicted | difference | between) & set(self.facts)

    def full_chain(self, state: Resolved) -> set[EventId]:
        found: set[EventId] = set(state.values()) if self.inclusive else set()
        return found.union(*map(self.chain, state.values()))

    def chain(self, event: EventId) -> set[EventId]:
        found: set[EventId] = set()
        for one in self.auth.get(event, ()):
            found |= {one} | self.chain(one)
        return found

    def is_power_event(self, fact: Fact) -> bool:
        if fact.kind in ("power", "join_rules", "revocation"):
            return True
        if not isinstance(fact.content, Member):
            return False
        taking = fact.content.membership in (Membership.LEAVE, Membership.BAN)
        return taking and fact.key != member_key(fact.sender)

    def power_ordering(self, events: set[EventId]) -> list[EventId]:
        ordered: list[EventId] = []
        left = set(events)
        while left:
            free = [event for event in left if not set(self.auth[event]) & left]
            ordered.append(min(free, key=self.power_rank))
            left.discard(ordered[-1])
        return ordered

    def power_rank(self, event: EventId) -> tuple[float, int, EventId]:
        fact = self.facts[event]
        before = self.power_before(event)
        power = None if before is None else self.facts[before].content
        level = Levels(self.create, power if isinstance(power, Power) else None, self.version).of(fact.sender)
        return -level, fact.time, event

    def power_before(self, event: EventId) -> EventId | None:
        known = [one for one in self.auth[event] if one in self.facts]
        return next((one for one in known if self.facts[one].place == POWER_KEY), None)

    def mainline_rank(self, event: EventId, last: EventId | None) -> tuple[float, int, EventId]:
        mainline: list[EventId] = []
        while last is not None:
            mainline.append(last)
            last = self.power_before(last)
        one = self.power_before(event)
        while one is not None and one not in mainline:
            one = self.power_before(one)
        position = math.inf if one is None else mainline.index(one)
        return -position, self.facts[event].time, event

    def iterative_auth(self, events: list[EventId], start: Resolved) -> Resolved:
        state = dict(start)
        for event in events:
            fact = self.facts[event]
            own = {self.facts[one].place: one for one in self.auth[event] if one in self.facts}
            if allowed(fact, Seen(self, {**own, **state}, state), self.version) is None:
                state[fact.place] = event
        return state


class Seen:
    """What the rules see."""

    def __init__(self, room: Specified, events: Resolved, state: Resolved) -> None:
        self.create = room.create
        self._room = room
        self._events = events
        self._state = state

    def get(self, place: StateKey) -> Fact | None:
        event = self._events.get(place)
        return None if event is None else self._room.facts.get(event)

    def is_relay_person(self, person: AuthorId) -> bool:
        contents = (self._room.facts[event].content for event in self._state.values())
        return any(isinstance(one, Relay) and one.active and one.person == person for one in contents)
