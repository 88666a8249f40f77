"""Which state holds where several meet: Matrix's state resolution, version 2.1 (and 2 for comparison).

Matrix specification, room version 12 (room version 11 for `Version.V11`). Where the specification can be
read in two ways, the full auth chain of a state includes the state's own events. The result is a function
of the sets of events alone, never of an order: whatever is ranked is ranked down to the event's id.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence

import immutables

from linnet.core.ids import EventId
from linnet.rooms.access.chains import Chains, Parents
from linnet.rooms.access.facts import POWER_KEY, Fact, State, StateKey
from linnet.rooms.access.levels import Levels, Rank, Version
from linnet.rooms.access.mainline import Mainline
from linnet.rooms.access.rules import allowed
from linnet.rooms.access.trial import Causality, Lookup, Trial
from linnet.rooms.content import JOIN_RULES, POWER, REVOCATION, Member, Membership, Power, member_key


class Resolver:
    """Resolution over the events of one room; remembers what does not change about them."""

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
        """The state that holds where these meet."""
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
        """The power event among those that authorise an event."""
        for auth in self._auth_of(event):
            fact = self._lookup(auth)
            if fact is not None and fact.kind == POWER and fact.key == "":
                return auth
        return None

    def _full_conflicted_set(self, state_sets: Sequence[State], conflicted: dict[StateKey, None]) -> int:
        """Conflicted events, the auth difference and (version 2.1) all on paths between conflicted ones."""
        chains = self._chains
        every, common, ends = 0, -1, 0
        for state in state_sets:
            events = [state[key] for key in conflicted if key in state]
            reached = chains.union(events)
            every, common, ends = every | reached, common & reached, ends | chains.bits(events)
        difference = every & ~common
        if difference & ~ends:  # what every set has in common cannot differ
            shared = (event for key, event in state_sets[0].items() if key not in conflicted)
            difference &= ~chains.union(shared)
        return ends | difference | (chains.through(ends) if self._version is Version.V12 else 0)

    def _with_chains(
        self, powers: Iterable[Fact], full: int, facts: dict[EventId, Fact]
    ) -> dict[EventId, Fact]:
        """Power events and those that authorise them, as far as they are in the full conflicted set."""
        mask = self._chains.union(fact.id for fact in powers) & full
        return {event: facts[event] for event in self._chains.events(mask) if event in facts}

    def _by_power(self, facts: dict[EventId, Fact]) -> list[Fact]:
        """Reverse topological power ordering: causes first; of those that are free, that of most power."""
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
        """By the level that the sender had according to the event's own auth events."""
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
        """Let each event take its place that the events before it allow."""
        for fact in facts:
            if fact.key is None:
                continue
            auth = (self._lookup(event) for event in self._auth_of(fact.id))
            trial.begin(fact, {one.place: one for one in auth if one is not None and one.key is not None})
            if not trial.is_overtaken() and allowed(fact, trial, self._version) is None:
                trial.put(fact)

    def _time(self, fact: Fact) -> int:
        return fact.time if self._time_of is None else self._time_of(fact.id)


def resolve(
    state_sets: Sequence[State],
    lookup: Lookup,
    auth_of: Parents,
    create: Fact,
    version: Version = Version.V12,
    time_of: Callable[[EventId], int] | None = None,
) -> State:
    """The state that holds where these meet, once; whoever asks again keeps a `Resolver`."""
    return Resolver(create, lookup, auth_of, version, time_of).resolve(state_sets)


def _conflicts(state_sets: Sequence[State]) -> dict[StateKey, None]:
    """The places where the sets do not all have the same event."""
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
    """Whether an event may take away what others could do. A revocation does: it is our own addition."""
    if fact.kind in (POWER, JOIN_RULES, REVOCATION):
        return True
    if not isinstance(fact.content, Member) or fact.key == member_key(fact.sender):
        return False
    return fact.content.membership in (Membership.LEAVE, Membership.BAN)
