"""State resolution, which merges several states into one: that of Matrix, version 2.1 (and 2 to compare).

Matrix specification, room version 12 (room version 11 for `Version.V11`). Where the specification can be
read in two ways, the full auth chain of a state includes the state's own events. The result is a function
of the sets of events alone, never of an order: whatever is ranked is ranked down to the event's id.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

import immutables

from linnet.core.ids import AuthorId, EventId
from linnet.rooms.auth.event_auth import allowed
from linnet.rooms.auth.room_state import POWER_KEY, Fact, Levels, Rank, State, StateKey, Version
from linnet.rooms.event_types import (
    JOIN_RULES,
    POWER,
    RELAY,
    REVOCATION,
    Member,
    Membership,
    Power,
    Relay,
    member_key,
)


class Resolver:
    """Resolves states of one room; caches properties of events that never change."""

    def __init__(
        self,
        create: Fact,
        lookup: Lookup,
        auth_of: Parents,
        version: Version = Version.V12,
        time_of: Callable[[EventId], int] | None = None,
        causality: Causality | None = None,
    ) -> None:
        self._create = create
        self._lookup = lookup
        self._auth_of = auth_of
        self._version = version
        self._time_of = time_of
        self._causality = causality
        self._chains = Chains(auth_of)
        self.mainline = Mainline(self.power_of)

    def resolve(self, state_sets: Sequence[State]) -> State:
        """Return the state that these states resolve to."""
        if not state_sets:
            return immutables.Map()
        base = state_sets[0]
        conflicted = _conflicts(state_sets)
        if not conflicted:
            return base
        full = self._full_conflicted_set(state_sets, conflicted)
        facts = {event: fact for event in self._chains.events(full) if (fact := self._lookup(event))}
        powers = self._with_chains([fact for fact in facts.values() if _is_power_event(fact)], full, facts)
        unconflicted = None if self._version is Version.V12 else _without(base, conflicted)
        trial = Trial(self._create, self._lookup, unconflicted, self._causality)
        self._apply(self._by_power(powers), trial)
        last_power = trial.stands_at(POWER_KEY)
        rest = [fact for event, fact in facts.items() if event not in powers]
        self._apply(self._by_mainline(rest, last_power), trial)
        return trial.over(base, conflicted)

    def power_of(self, event: EventId) -> EventId | None:
        """Return the power event among those that authorise an event."""
        for auth in self._auth_of(event):
            fact = self._lookup(auth)
            if fact is not None and fact.kind == POWER and fact.key == "":
                return auth
        return None

    def _full_conflicted_set(self, state_sets: Sequence[State], conflicted: dict[StateKey, None]) -> int:
        """Return conflicted events, the auth difference and (version 2.1) all on paths between the former."""
        chains = self._chains
        every, common, ends = 0, -1, 0
        for state in state_sets:
            events = [state[key] for key in conflicted if key in state]
            reached = chains.union(events)
            every, common, ends = every | reached, common & reached, ends | chains.bits(events)
        difference = every & ~common
        if difference & ~ends:  # Events that all sets have in common cannot differ.
            shared = (event for key, event in state_sets[0].items() if key not in conflicted)
            difference &= ~chains.union(shared)
        return ends | difference | (chains.through(ends) if self._version is Version.V12 else 0)

    def _with_chains(
        self, powers: Iterable[Fact], full: int, facts: dict[EventId, Fact]
    ) -> dict[EventId, Fact]:
        """Return power events and those that authorise them, within the full conflicted set."""
        mask = self._chains.union(fact.id for fact in powers) & full
        return {event: facts[event] for event in self._chains.events(mask) if event in facts}

    def _by_power(self, facts: dict[EventId, Fact]) -> list[Fact]:
        """Sort in reverse topological power order: causes first; of unordered events, most power first."""
        waiting: dict[EventId, int] = {}
        children: dict[EventId, list[EventId]] = {}
        for event in facts:
            parents = [parent for parent in dict.fromkeys(self._auth_of(event)) if parent in facts]
            waiting[event] = len(parents)
            for parent in parents:
                children.setdefault(parent, []).append(event)
        free = [self._power_rank(facts[event]) for event, count in waiting.items() if not count]
        heapq.heapify(free)
        ordered: list[Fact] = []
        while free:
            event = heapq.heappop(free)[2]
            ordered.append(facts[event])
            for child in children.get(event, ()):
                waiting[child] -= 1
                if not waiting[child]:
                    heapq.heappush(free, self._power_rank(facts[child]))
        return ordered

    def _power_rank(self, fact: Fact) -> tuple[Rank, int, EventId]:
        """Return the sort key: by the level that the sender had in the event's own auth events."""
        before = self.power_of(fact.id)
        power = None if before is None else self._lookup(before)
        content = power.content if power is not None and isinstance(power.content, Power) else None
        level = Levels(self._create, content, self._version).of(fact.sender)
        return -level, self._time(fact), fact.id

    def _by_mainline(self, facts: Iterable[Fact], last_power: EventId | None) -> list[Fact]:
        def rank(fact: Fact) -> tuple[Rank, int, EventId]:
            position = self.mainline.position(self.power_of(fact.id), last_power)
            return float("-inf") if position is None else -position, self._time(fact), fact.id

        return sorted(facts, key=rank)

    def _apply(self, facts: Iterable[Fact], trial: Trial) -> None:
        """Put each event in its place if the events before it allow that."""
        for fact in facts:
            if fact.key is None:
                continue
            auth = (self._lookup(event) for event in self._auth_of(fact.id))
            trial.begin(fact, {one.place: one for one in auth if one is not None and one.key is not None})
            if not trial.is_overtaken() and allowed(fact, trial, self._version) is None:
                trial.put(fact)

    def _time(self, fact: Fact) -> int:
        return fact.time if self._time_of is None else self._time_of(fact.id)


def _conflicts(state_sets: Sequence[State]) -> dict[StateKey, None]:
    """Return the places where the sets do not all have the same event."""
    base = state_sets[0]
    conflicted: dict[StateKey, None] = {}
    for state in state_sets[1:]:
        if state is not base:
            conflicted |= {place: None for place, event in state.items() if base.get(place) != event}
            conflicted |= {place: None for place in base if place not in state}
    return conflicted


def _without(state: State, places: Iterable[StateKey]) -> State:
    left = state.mutate()
    for place in places:
        left.pop(place, None)
    return left.finish()


def _is_power_event(fact: Fact) -> bool:
    """Return whether an event may take rights away. Revocations do; they are our own addition."""
    if fact.kind in (POWER, JOIN_RULES, REVOCATION):
        return True
    if not isinstance(fact.content, Member) or fact.key == member_key(fact.sender):
        return False
    return fact.content.membership in (Membership.LEAVE, Membership.BAN)


Parents = Callable[[EventId], tuple[EventId, ...]]


class Chains:
    """Bit masks of the events that are reachable along one sort of edge, the event itself included.

    Events get their bits in the order in which they are first asked for, parents before children. That
    order differs between nodes: it must never show in a result.
    """

    def __init__(self, parents_of: Parents) -> None:
        self._parents_of = parents_of
        self._positions: dict[EventId, int] = {}
        self._order: list[EventId] = []
        self._masks: list[int] = []

    def mask(self, event: EventId) -> int:
        """Return the mask of an event and all that is reachable from it."""
        position = self._positions.get(event)
        return self._masks[self._place(event) if position is None else position]

    def bit(self, event: EventId) -> int:
        """Return the mask of the event alone."""
        position = self._positions.get(event)
        return 1 << (self._place(event) if position is None else position)

    def union(self, events: Iterable[EventId]) -> int:
        """Return the mask of these events and all that is reachable from any of them."""
        mask = 0
        for event in events:
            mask |= self.mask(event)
        return mask

    def bits(self, events: Iterable[EventId]) -> int:
        """Return the mask of these events alone."""
        mask = 0
        for event in events:
            mask |= self.bit(event)
        return mask

    @property
    def everything(self) -> int:
        """The mask of all events that have a bit."""
        return (1 << len(self._order)) - 1

    def reaches(self, event: EventId, other: EventId) -> bool:
        """Return whether the other is reachable from the event; each reaches itself."""
        mask = self.mask(event)
        position = self._positions.get(other)
        return position is not None and bool(mask >> position & 1)

    def events(self, mask: int) -> list[EventId]:
        """Return the events of a mask, parents before children."""
        order = self._order
        return [order[position] for position in _positions(mask)]

    def through(self, ends: int) -> int:
        """Return the mask of all events on a path from one of these to another, these included."""
        if not ends:
            return 0
        lowest = (ends & -ends).bit_length() - 1  # nothing before it reaches any of them
        below = 0
        for position in _positions(ends):
            below |= self._masks[position]
        found = 0
        for offset in _positions(below >> lowest):
            if self._masks[lowest + offset] & ends:
                found |= 1 << lowest + offset
        return found

    def __len__(self) -> int:
        return len(self._order)

    def _place(self, event: EventId) -> int:
        """Give bits to an event and all that it reaches, without recursion: chains are long."""
        stack = [event]
        while stack:
            top = stack[-1]
            if top in self._positions:
                stack.pop()
                continue
            parents = self._parents_of(top)
            absent = [parent for parent in parents if parent not in self._positions]
            if absent:
                stack += absent
                continue
            stack.pop()
            position = len(self._order)
            mask = 1 << position
            for parent in parents:
                mask |= self._masks[self._positions[parent]]
            self._positions[top] = position
            self._order.append(top)
            self._masks.append(mask)
        return self._positions[event]


def _positions(mask: int) -> Iterator[int]:
    """Yield the positions of the bits that are set, lowest first."""
    digits = bin(mask)[:1:-1]
    position = digits.find("1")
    while position >= 0:
        yield position
        position = digits.find("1", position + 1)


class Mainline:
    """The tree of power events, and positions relative to its current line, the mainline."""

    def __init__(self, power_before: Callable[[EventId], EventId | None]) -> None:
        self._power_before = power_before
        self._depths: dict[EventId, int] = {}

    def position(self, power: EventId | None, of: EventId | None) -> int | None:
        """Return how many steps before `of` the line of `power` left its mainline.

        None if they never met, or if there is no mainline; such events sort before all others.
        """
        if power is None or of is None:
            return None
        top = self._depth(of)
        one: EventId | None = power
        other: EventId | None = of
        while one is not None and other is not None and one != other:
            deeper, other_deeper = self._depth(one), self._depth(other)
            if deeper >= other_deeper:
                one = self._power_before(one)
            if other_deeper >= deeper:
                other = self._power_before(other)
        return None if one is None or other is None else top - self._depth(one)

    def _depth(self, power: EventId) -> int:
        line: list[EventId] = []
        one: EventId | None = power
        while one is not None and one not in self._depths:
            line.append(one)
            one = self._power_before(one)
        depth = 0 if one is None else self._depths[one]
        for event in reversed(line):
            depth += 1
            self._depths[event] = depth
        return depth


Lookup = Callable[[EventId], Fact | None]


class Causality(Protocol):
    """The causal order of a room's events, which Matrix does not know."""

    def is_before(self, event: EventId, other: EventId) -> bool:
        """Return whether the other follows the event."""

    def replaced_by(self, event: EventId) -> EventId | None:
        """Return the event that an event replaced."""


class Trial:
    """The state under reconstruction, as one event at a time sees it: on top of its own auth events.

    With `Causality`, an event is not judged by events that followed it. Without it, as in Matrix, a member
    who joined a public room that was closed later is out as soon as any stale head makes the join be judged
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
        """Turn to the next event, with these auth events."""
        self._fact = fact
        self._own = own

    def is_overtaken(self) -> bool:
        """Return whether the event that holds the current event's place follows it already."""
        holder = self._put.get(self._fact.place)
        return (
            holder is not None
            and self._causality is not None
            and self._causality.is_before(self._fact.id, holder.id)
        )

    def put(self, fact: Fact) -> None:
        """Put an allowed event in its place."""
        self._put[fact.place] = fact
        if fact.kind == RELAY:
            self._relays[fact.place] = None

    def stands_at(self, place: StateKey) -> EventId | None:
        """Return the event at a place so far, without looking at auth events."""
        fact = self._put.get(place)
        if fact is not None:
            return fact.id
        return None if self._base is None else self._base.get(place)

    def get(self, place: StateKey) -> Fact | None:
        """Return the event at a place, as the rules see it."""
        standing = self.stands_at(place)
        fact = None if standing is None else self._not_after(standing)
        return self._own.get(place) if fact is None else fact

    def is_relay_person(self, person: AuthorId) -> bool:
        """Return whether an active relay belongs to this person."""
        relays = (fact.content for place in self._relays if (fact := self.get(place)) is not None)
        return any(isinstance(one, Relay) and one.active and one.person == person for one in relays)

    def _not_after(self, standing: EventId) -> Fact | None:
        """Return the last version of an entry that does not follow the current event.

        It is not simply the version that the event knew: one version may have overruled the event, and the
        next knew both.
        """
        version: EventId | None = standing
        if self._causality is not None:
            while version is not None and self._causality.is_before(self._fact.id, version):
                version = self._causality.replaced_by(version)
        return None if version is None else self._lookup(version)

    def over(self, base: State, conflicted: Iterable[StateKey]) -> State:
        """Return the base state with its conflicts settled; entries that had no conflict stay."""
        settled = dict.fromkeys(conflicted)
        result = base.mutate()
        for place in settled:
            if place not in self._put:
                result.pop(place, None)
        for place, fact in self._put.items():
            if place in settled or place not in base:
                result[place] = fact.id
        return result.finish()
