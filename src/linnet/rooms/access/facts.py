"""What the rules see of an event, and what a state is.

A `Fact` is an event with its body understood. Everything that can be told from the event alone is
checked on the way (keys, bodies); what takes a signature is in `proofs`, what takes a state in `rules`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol, TypeAlias

import immutables
from msgspec import Struct

from linnet.core.errors import BadText, InvalidEvent
from linnet.core.ids import AuthorId, DeviceId, EventId, PeerId
from linnet.core.reasons import Reason
from linnet.event.event import Event
from linnet.identity.text import Sort, from_text, to_text
from linnet.rooms.content import (
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
    Revoked,
    content_of,
)

StateKey: TypeAlias = tuple[str, str]
"""Kind and key: what there is one of in a state."""

State: TypeAlias = immutables.Map[StateKey, EventId]
"""A state of a room. Persistent: that of the next event shares nearly all with it."""

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
    """Where it stands in the state; absent if it sets none. See `revocation_key` for the one kind whose
    place is not the key that its event has."""
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
    """A state, as the rules ask it."""

    @property
    def create(self) -> Fact:
        """The event that founded the room."""

    def get(self, place: StateKey) -> Fact | None:
        """The event that stands there."""

    def is_relay_person(self, person: AuthorId) -> bool:
        """Whether an active relay is this person's."""


def fact_of(event: Event) -> Fact:
    """The event as the rules see it; `InvalidEvent` if its key or body is not one of its kind."""
    kind, key = event.kind, event.tail.key
    content = content_of(kind, event.body)
    if kind in CONTROL_KINDS:
        key = _control_key(event, content)
    elif kind in KINDS_WITHOUT_KEY and key is not None:
        raise InvalidEvent(Reason.MALFORMED, f"a {kind} event has no key")
    control = event.tail.control or ()
    return Fact(event.id, kind, key, event.author, event.device, event.time, content, control)


def revocation_key(person: AuthorId, device: DeviceId) -> str:
    """Where a person's revocation of a device stands in the state.

    The person belongs to it: nothing in a revocation proves whose the device is, so with one place per
    device anybody could take that of another's device and keep its owner from revoking it.
    """
    return f"{device.hex()}:{person.hex()}"


@lru_cache(maxsize=16_384)
def person_of(key: str) -> AuthorId:
    """The person of a membership's key; `BadText` if it is not exactly a person id."""
    return AuthorId(_exactly(Sort.PERSON, key))


@lru_cache(maxsize=4096)
def relay_of(key: str) -> PeerId:
    """The device of a relay's key; `BadText` if it is not exactly a device id."""
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
    """The bytes of an id in its one spelling: two spellings would be two entries of a state."""
    payload = from_text(sort, key)
    if to_text(sort, payload) != key:
        raise BadText(f"the id {key[:80]!r} is not in its usual spelling")
    return payload
