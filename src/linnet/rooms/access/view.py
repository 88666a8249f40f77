"""Reading a state of a room."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from linnet.core.ids import AuthorId, DeviceId, EventId, PeerId
from linnet.rooms.access.facts import (
    RETENTION_KEY,
    Fact,
    State,
    StateKey,
    person_of,
    relay_of,
    revocation_key,
)
from linnet.rooms.access.levels import Levels, Rank, levels_in
from linnet.rooms.access.membership_rules import join_rule_in, membership_in
from linnet.rooms.content import (
    MEMBER,
    RELAY,
    REVOCATION,
    Create,
    JoinRule,
    Member,
    Membership,
    Power,
    Relay,
    Retention,
    member_key,
)

_NO_POWER = Power()


class Source(Protocol):
    """Where the facts of a state are: `ControlDag`."""

    @property
    def create(self) -> Fact:
        """The event that founded the room."""

    @property
    def relay_keys(self) -> Iterable[str]:
        """Keys of all relays that were ever named: few, where a walk through a state is long."""

    def fact(self, event: EventId) -> Fact:
        """An event of the state."""


class View:
    """A state with its facts. What takes a walk through the state is remembered."""

    def __init__(self, source: Source, state: State) -> None:
        self.create = source.create
        self.state = state
        self._source = source
        self._members: tuple[tuple[AuthorId, Membership], ...] | None = None
        self._joined: tuple[AuthorId, ...] | None = None
        self._relays: dict[PeerId, Relay] | None = None
        self._levels: Levels | None = None

    @property
    def is_encrypted(self) -> bool:
        """Whether the room was founded as one that only members can read."""
        content = self.create.content
        return isinstance(content, Create) and content.newcomers is not None

    def get(self, place: StateKey) -> Fact | None:
        """The event that stands there."""
        event = self.state.get(place)
        return None if event is None else self._source.fact(event)

    def membership(self, person: AuthorId) -> Membership:
        """How a person stands to the room."""
        return membership_in(self, member_key(person))

    def members(self) -> tuple[tuple[AuthorId, Membership], ...]:
        """Everyone who was ever heard of, in the order of their ids."""
        if self._members is None:
            found = {
                person_of(key): fact.content.membership
                for (kind, key), event in self.state.items()
                if kind == MEMBER and isinstance((fact := self._source.fact(event)).content, Member)
            }
            self._members = tuple(sorted(found.items()))
        return self._members

    def joined(self) -> tuple[AuthorId, ...]:
        """Those who are in the room, in the order of their ids."""
        if self._joined is None:
            self._joined = tuple(one for one, how in self.members() if how is Membership.JOIN)
        return self._joined

    @property
    def levels(self) -> Levels:
        """The levels that hold."""
        if self._levels is None:
            self._levels = levels_in(self)
        return self._levels

    def level_of(self, person: AuthorId) -> Rank:
        """The level of a person."""
        return self.levels.of(person)

    def power(self) -> Power:
        """The power levels as they were set; nothing but defaults, if they never were."""
        return self.levels.power or _NO_POWER

    def join_rule(self) -> JoinRule:
        """Who may join."""
        return join_rule_in(self)

    def relays(self) -> tuple[tuple[PeerId, Relay], ...]:
        """The active relays, in the order of their ids."""
        return tuple(self._active_relays().items())

    def is_relay(self, peer: PeerId) -> bool:
        """Whether this device is an active relay of the room."""
        return peer in self._active_relays()

    def is_relay_person(self, person: AuthorId) -> bool:
        """Whether an active relay is this person's."""
        return any(relay.person == person for relay in self._active_relays().values())

    def retention(self) -> int | None:
        """Milliseconds that a relay keeps an event at most; None: until capacity asks for it."""
        fact = self.get(RETENTION_KEY)
        return fact.content.max_lifetime_ms if fact and isinstance(fact.content, Retention) else None

    def is_revoked(self, person: AuthorId, device: DeviceId) -> bool:
        """Whether the person has revoked this device in the room."""
        return (REVOCATION, revocation_key(person, device)) in self.state

    def _active_relays(self) -> dict[PeerId, Relay]:
        if self._relays is None:
            found = {relay_of(key): self.get((RELAY, key)) for key in self._source.relay_keys}
            self._relays = {
                peer: fact.content
                for peer, fact in sorted(found.items())
                if fact is not None and isinstance(fact.content, Relay) and fact.content.active
            }
        return self._relays
