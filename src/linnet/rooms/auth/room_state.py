"""Facts, which are events as the authorisation rules see them; states made of them, and views to read states.

A `Fact` is an event with its body decoded; keys and bodies, which can be checked from the event alone, are
checked on the way. `event_auth` checks signatures and the state. Power levels are those of the
Matrix specification, room versions 11 and 12."""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import Enum
from functools import lru_cache
from typing import Protocol, TypeAlias

import immutables
from msgspec import Struct

from linnet.core.errors import BadText, InvalidEvent
from linnet.core.ids import AuthorId, DeviceId, EventId, PeerId
from linnet.core.reasons import Reason
from linnet.event.event import Event
from linnet.identity.text import Sort, from_text, to_text
from linnet.rooms.event_types import (
    CONTROL_KINDS,
    CREATE,
    JOIN_RULES,
    KINDS_WITHOUT_KEY,
    MEMBER,
    POWER,
    RELAY,
    RETENTION,
    REVOCATION,
    Content,
    Create,
    JoinRule,
    JoinRules,
    Member,
    Membership,
    Power,
    Relay,
    Retention,
    Revoked,
    content_of,
    member_key,
)

StateKey: TypeAlias = tuple[str, str]
"""Kind and key of a place in a state, which holds one event."""

State: TypeAlias = immutables.Map[StateKey, EventId]
"""A state of a room, as a persistent map: the state after the next event shares nearly all of it."""

CREATE_KEY: StateKey = (CREATE, "")
POWER_KEY: StateKey = (POWER, "")
JOIN_RULES_KEY: StateKey = (JOIN_RULES, "")
RETENTION_KEY: StateKey = (RETENTION, "")

_WITH_EMPTY_KEY = frozenset({CREATE, POWER, JOIN_RULES, RETENTION})


class Fact(Struct, frozen=True, gc=False):
    """An event as the rules see it."""

    id: EventId
    kind: str
    key: str | None
    """Its key in the state; None if the event sets no state. Only a revocation's differs from the key in
    its event: see `revocation_key`."""
    sender: AuthorId
    device: DeviceId
    time: int
    content: Content
    control: tuple[EventId, ...] = ()
    """The control heads that it names (in Matrix: its previous events)."""

    @property
    def place(self) -> StateKey:
        """Kind and key of an event that sets state."""
        if self.key is None:
            raise ValueError(f"a {self.kind} event without a key sets no state")
        return self.kind, self.key


class StateView(Protocol):
    """A state, as the authorisation rules read it."""

    @property
    def create(self) -> Fact:
        """The event that founded the room."""

    def get(self, place: StateKey) -> Fact | None:
        """Return the event at a place; None if there is none."""

    def is_relay_person(self, person: AuthorId) -> bool:
        """Return whether an active relay belongs to this person."""


def fact_of(event: Event) -> Fact:
    """Return an event as the rules see it; `InvalidEvent` if its kind allows no such key or body."""
    kind, key = event.kind, event.tail.key
    content = content_of(kind, event.body)
    if kind in CONTROL_KINDS:
        key = _control_key(event, content)
    elif kind in KINDS_WITHOUT_KEY and key is not None:
        raise InvalidEvent(Reason.MALFORMED, f"a {kind} event has no key")
    control = event.tail.control or ()
    return Fact(event.id, kind, key, event.author, event.device, event.time, content, control)


def revocation_key(person: AuthorId, device: DeviceId) -> str:
    """Return the state key of a person's revocation of a device.

    The person is part of the key: nothing in a revocation proves who owns the device, so with one place per
    device anybody could occupy that of another's device and keep its owner from revoking it.
    """
    return f"{device.hex()}:{person.hex()}"


@lru_cache(maxsize=16_384)
def person_of(key: str) -> AuthorId:
    """Return the person of a membership's key; `BadText` if it is not exactly a person id."""
    return AuthorId(_exactly(Sort.PERSON, key))


@lru_cache(maxsize=4096)
def relay_of(key: str) -> PeerId:
    """Return the device of a relay's key; `BadText` if it is not exactly a device id."""
    return PeerId(_exactly(Sort.DEVICE, key))


def _control_key(event: Event, content: Content) -> str:
    kind, key = event.kind, event.tail.key
    if key is None:
        raise InvalidEvent(Reason.MALFORMED, f"a {kind} event needs a key")
    try:
        if kind in _WITH_EMPTY_KEY and key:
            raise BadText(f"the key of a {kind} event is empty")
        if kind == MEMBER:
            person_of(key)
        elif kind == RELAY:
            relay_of(key)
        elif kind == REVOCATION and isinstance(content, Revoked):
            if key != content.revocation.device.hex():
                raise BadText("the key of a revocation is the device that it names, in hex")
            return revocation_key(event.author, content.revocation.device)
    except BadText as error:
        raise InvalidEvent(Reason.MALFORMED, str(error)) from error
    return key


def _exactly(sort: Sort, key: str) -> bytes:
    """Decode an id in its one canonical spelling: two spellings would be two entries of a state."""
    payload = from_text(sort, key)
    if to_text(sort, payload) != key:
        raise BadText(f"the id {key[:80]!r} is not in its usual spelling")
    return payload


Rank: TypeAlias = int | float
"""A person's level: an int, or `INFINITE`, which is above each of them."""

INFINITE = math.inf
_NO_POWER = Power()
_CREATOR_OF_11 = 100


class Version(Enum):
    """The Matrix room version whose rules apply. Ours is 12; 11 is for comparison with other work."""

    V11 = 11
    V12 = 12


class Levels(Struct, frozen=True, gc=False):
    """The power levels of one state."""

    create: Fact
    power: Power | None
    """The levels as they were set; None if they never were."""
    version: Version = Version.V12

    def is_creator(self, person: AuthorId) -> bool:
        """Return whether this person founded the room or is named as a creator: infinite in version 12."""
        return person == self.create.sender or person in additional_creators(self.create)

    def of(self, person: AuthorId) -> Rank:
        """Return the level of a person."""
        if self.version is Version.V12 and self.is_creator(person):
            return INFINITE
        if self.power is None:
            return _CREATOR_OF_11 if self.version is Version.V11 and person == self.create.sender else 0
        level = self.power.users.get(person)
        return level if level is not None else self.power.users_default or 0

    def required(self, kind: str, is_state: bool) -> int:
        """Return the level that a sender of this kind of event needs."""
        power = self.power or _NO_POWER
        level = power.events.get(kind)
        if level is not None:
            return level
        return _or(power.state_default, 50) if is_state else _or(power.events_default, 0)

    @property
    def invite(self) -> int:
        """The level that a person needs to invite."""
        return _or((self.power or _NO_POWER).invite, 0)

    @property
    def kick(self) -> int:
        """The level that a person needs to kick another."""
        return _or((self.power or _NO_POWER).kick, 50)

    @property
    def ban(self) -> int:
        """The level that a person needs to ban or unban."""
        return _or((self.power or _NO_POWER).ban, 50)

    @property
    def redact(self) -> int:
        """The level that a person needs to redact another's event."""
        return _or((self.power or _NO_POWER).redact, 50)


def levels_in(view: StateView, version: Version = Version.V12) -> Levels:
    """Return the power levels of a state."""
    power = view.get(POWER_KEY)
    return Levels(view.create, power.content if power and isinstance(power.content, Power) else None, version)


def additional_creators(create: Fact) -> tuple[AuthorId, ...]:
    """Return the creators beside the author of the create event."""
    return create.content.creators if isinstance(create.content, Create) else ()


def _or(level: int | None, default: int) -> int:
    return default if level is None else level


def membership_in(view: StateView, key: str) -> Membership:
    """Return the membership of the person with this key; an unknown person counts as having left."""
    fact = view.get((MEMBER, key))
    return fact.content.membership if fact and isinstance(fact.content, Member) else Membership.LEAVE


def join_rule_in(view: StateView) -> JoinRule:
    """Return the join rule of a state; `INVITE` if none was set."""
    fact = view.get(JOIN_RULES_KEY)
    return fact.content.rule if fact and isinstance(fact.content, JoinRules) else JoinRule.INVITE


class Source(Protocol):
    """The source of a state's facts: `ControlDag`."""

    @property
    def create(self) -> Fact:
        """The event that founded the room."""

    @property
    def relay_keys(self) -> Iterable[str]:
        """The keys of all relays that were ever named: few, which saves a walk through a state."""

    def fact(self, event: EventId) -> Fact:
        """Return an event of the state."""


class View:
    """A state with its facts. Results that take a walk through the state are cached."""

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
        """Whether the room was founded as encrypted, so that only members can read it."""
        content = self.create.content
        return isinstance(content, Create) and content.newcomers is not None

    def get(self, place: StateKey) -> Fact | None:
        """Return the event at a place; None if there is none."""
        event = self.state.get(place)
        return None if event is None else self._source.fact(event)

    def membership(self, person: AuthorId) -> Membership:
        """Return the membership of a person."""
        return membership_in(self, member_key(person))

    def members(self) -> tuple[tuple[AuthorId, Membership], ...]:
        """Return everyone with a membership event, in the order of their ids."""
        if self._members is None:
            found = {
                person_of(key): fact.content.membership
                for (kind, key), event in self.state.items()
                if kind == MEMBER and isinstance((fact := self._source.fact(event)).content, Member)
            }
            self._members = tuple(sorted(found.items()))
        return self._members

    def joined(self) -> tuple[AuthorId, ...]:
        """Return the joined people, in the order of their ids."""
        if self._joined is None:
            self._joined = tuple(one for one, how in self.members() if how is Membership.JOIN)
        return self._joined

    @property
    def levels(self) -> Levels:
        """The power levels of the state."""
        if self._levels is None:
            self._levels = levels_in(self)
        return self._levels

    def level_of(self, person: AuthorId) -> Rank:
        """Return the level of a person."""
        return self.levels.of(person)

    def power(self) -> Power:
        """Return the power levels as they were set; only defaults if they never were."""
        return self.levels.power or _NO_POWER

    def join_rule(self) -> JoinRule:
        """Return the join rule."""
        return join_rule_in(self)

    def relays(self) -> tuple[tuple[PeerId, Relay], ...]:
        """Return the active relays, in the order of their ids."""
        return tuple(self._active_relays().items())

    def is_relay(self, peer: PeerId) -> bool:
        """Return whether this device is an active relay of the room."""
        return peer in self._active_relays()

    def relay_of(self, peer: PeerId) -> Relay | None:
        """Return the relay entry of this device; None if it is no active relay."""
        return self._active_relays().get(peer)

    def is_relay_person(self, person: AuthorId) -> bool:
        """Return whether an active relay belongs to this person."""
        return any(relay.person == person for relay in self._active_relays().values())

    def retention(self) -> int | None:
        """Return the most milliseconds that relays keep an event; None: until they need the space."""
        fact = self.get(RETENTION_KEY)
        return fact.content.max_lifetime_ms if fact and isinstance(fact.content, Retention) else None

    def is_revoked(self, person: AuthorId, device: DeviceId) -> bool:
        """Return whether the person has revoked this device in the room."""
        return (REVOCATION, revocation_key(person, device)) in self.state

    def is_member(self, person: AuthorId, device: DeviceId) -> bool:
        """Return whether a person has joined, and has not revoked this device."""
        return self.membership(person) is Membership.JOIN and not self.is_revoked(person, device)

    def may_hold_keys(self, person: AuthorId, device: DeviceId) -> bool:
        """Return whether a device should hold keys of the room: its person is a member, and no relay's."""
        return self.is_member(person, device) and not self.is_relay_person(person)

    def _active_relays(self) -> dict[PeerId, Relay]:
        if self._relays is None:
            found = {relay_of(key): self.get((RELAY, key)) for key in self._source.relay_keys}
            self._relays = {
                peer: fact.content
                for peer, fact in sorted(found.items())
                if fact is not None and isinstance(fact.content, Relay) and fact.content.active
            }
        return self._relays
