"""The kinds of a room's events, and the bodies of those that nodes must understand.

Control events decide the permissions of people; relays hold them and no other history, so their bodies are
never encrypted. A node passes on all other events without reading them.
"""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta, Struct

from linnet.core.errors import InvalidEvent
from linnet.core.ids import AuthorId, Count, Hints, WireAuthorId, WireEventId
from linnet.core.reasons import Reason
from linnet.event.event import MESSAGE, Event
from linnet.identity.cards import Revocation
from linnet.identity.text import Sort, to_text
from linnet.rooms.invitations import Ticket

CREATE = "create"
MEMBER = "member"
POWER = "power"
JOIN_RULES = "join_rules"
RELAY = "relay"
RETENTION = "retention"
REVOCATION = "revocation"
CONTROL_KINDS = frozenset({CREATE, MEMBER, POWER, JOIN_RULES, RELAY, RETENTION, REVOCATION})
"""The kinds that make up the control DAG, which defines authority."""

NAME = "name"
TOPIC = "topic"
REDACTION = "redaction"
ATTACHMENT = "attachment"
HISTORY = "history"
"""Shows newcomers of an encrypted room the earlier messages (`linnet.rooms.encryption.room_group`)."""
GROUP = "group"
"""An operation on the keys of an encrypted room (`linnet.groups`), from device to device."""

ROOM_VERSION = 1
"""Our version 1 follows the rules of Matrix room version 12, over our events (docs/adr/0010)."""

CREATORS = 16
"""The most creators that a room may have beside its author."""
LEVEL_MOST = 2**53 - 1
Level = Annotated[int, Meta(ge=-LEVEL_MOST, le=LEVEL_MOST)]
Levels = Annotated[dict[str, Level], Meta(max_length=256)]
UserLevels = Annotated[dict[WireAuthorId, Level], Meta(max_length=2048)]
Words = Annotated[str, Meta(max_length=512)]


class Membership(StrEnum):
    """The membership of a person in a room. A person without one counts as having left."""

    INVITE = "invite"
    JOIN = "join"
    LEAVE = "leave"
    BAN = "ban"
    KNOCK = "knock"


class JoinRule(StrEnum):
    """The rule that decides who may join."""

    PUBLIC = "public"
    INVITE = "invite"
    KNOCK = "knock"


class Newcomers(StrEnum):
    """What an encrypted room lets newcomers read."""

    FROM_NOW = "from_now"
    """Messages sent after they joined."""
    SHARED = "shared"
    """Also earlier messages that a member shows them."""


class Create(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The first event of a room. Its author and `creators` have infinite power, for ever."""

    version: Count
    creators: Annotated[tuple[WireAuthorId, ...], Meta(max_length=CREATORS)]
    """Creators beside the author."""
    entropy: Annotated[bytes, Meta(min_length=16, max_length=16)]
    """Random bytes, so that no two rooms have the same id."""
    newcomers: Newcomers | None = None
    """Encrypted rooms: what newcomers may read. None: the room is not encrypted, for ever."""


class Member(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The membership of the person whose id is the event's key."""

    membership: Membership
    reason: Words | None = None
    ticket: Ticket | None = None
    """With a join: the invitation that allows it."""


class Power(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The levels of people, and those that events and acts require. Absent ones have Matrix's default."""

    users: UserLevels = {}
    users_default: Level | None = None
    events: Levels = {}
    events_default: Level | None = None
    state_default: Level | None = None
    ban: Level | None = None
    kick: Level | None = None
    redact: Level | None = None
    invite: Level | None = None


class JoinRules(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The join rule; the key is empty."""

    rule: JoinRule


class Relay(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """States whether the device whose id is the event's key is a relay of the room.

    Written by a member of sufficient level, never by the relay itself.
    """

    active: bool
    person: WireAuthorId
    """The owner of the device; as a relay this person authors nothing but its own membership."""
    hints: Hints = ()


class Retention(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The longest time that every relay of the room keeps an event; the key is empty."""

    max_lifetime_ms: Count | None
    """None: until the relay needs the space."""


class Revoked(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """Revokes a device of the author from here on; the key is the device, in hex."""

    revocation: Revocation


class Plain(Struct, frozen=True, gc=False):
    """The body of an event that only applications read."""


Content: TypeAlias = Create | Member | Power | JoinRules | Relay | Retention | Revoked | Plain


class Redaction(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The body of a redaction, by which the author or a moderator takes an event back."""

    event: WireEventId
    reason: Words | None = None


_CONTENTS: dict[str, type[Create | Member | Power | JoinRules | Relay | Retention | Revoked]] = {
    CREATE: Create,
    MEMBER: Member,
    POWER: Power,
    JOIN_RULES: JoinRules,
    RELAY: Relay,
    RETENTION: Retention,
    REVOCATION: Revoked,
}
_DECODERS = {kind: msgspec.msgpack.Decoder(content) for kind, content in _CONTENTS.items()}
_decode_redaction = msgspec.msgpack.Decoder(Redaction).decode
_encode = msgspec.msgpack.Encoder().encode

PLAIN = Plain()
KINDS_WITHOUT_KEY = frozenset({MESSAGE, REDACTION, ATTACHMENT, GROUP, HISTORY})


def content_of(kind: str, body: bytes) -> Content:
    """Decode the body of an event as far as nodes must understand it; `InvalidEvent` if it is malformed."""
    decoder = _DECODERS.get(kind)
    if decoder is None:
        return PLAIN
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidEvent(Reason.MALFORMED, f"the body of a {kind} event: {error}") from error


def create_of(event: Event) -> Create:
    """Decode the body of a room's first event; `InvalidEvent` if it is no create event."""
    content = content_of(CREATE, event.body)
    if not isinstance(content, Create):
        raise InvalidEvent(Reason.MALFORMED, "no create event")
    return content


def redaction_of(body: bytes) -> Redaction:
    """Decode the body of a redaction; `InvalidEvent` if it is malformed."""
    try:
        return _decode_redaction(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidEvent(Reason.MALFORMED, f"the body of a redaction: {error}") from error


def body_of(content: Struct) -> bytes:
    """Encode a body, so that equal contents give equal bytes: levels are sorted by their keys."""
    if isinstance(content, Create) and content.newcomers is None:
        # In the form of nodes that know of no encryption.
        return _encode((content.version, content.creators, content.entropy))
    if isinstance(content, Power):
        users, events = dict(sorted(content.users.items())), dict(sorted(content.events.items()))
        content = msgspec.structs.replace(content, users=users, events=events)
    return _encode(content)


@lru_cache(maxsize=16_384)
def member_key(person: AuthorId) -> str:
    """Return the key of a person's membership."""
    return to_text(Sort.PERSON, person)
