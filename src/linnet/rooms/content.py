"""What the events of a room say: kinds, and the bodies of those that nodes must understand.

Control events decide who may do what; relays hold them and no other history, so their bodies are never
encrypted. Everything else a node passes on without reading it.
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
from linnet.rooms.ticket import Ticket

CREATE = "create"
MEMBER = "member"
POWER = "power"
JOIN_RULES = "join_rules"
RELAY = "relay"
RETENTION = "retention"
REVOCATION = "revocation"
CONTROL_KINDS = frozenset({CREATE, MEMBER, POWER, JOIN_RULES, RELAY, RETENTION, REVOCATION})
"""Kinds that make up the control DAG: what authority is defined by."""

NAME = "name"
TOPIC = "topic"
REDACTION = "redaction"
ATTACHMENT = "attachment"
HISTORY = "history"
"""Shows newcomers of an encrypted room what was said before (`linnet.rooms.encryption.history`)."""
GROUP = "group"
"""Operations on the keys of an encrypted room (`linnet.groups`): what devices say to each other."""

ROOM_VERSION = 1
"""Matrix room version 12 in its meaning, over our events (docs/adr/0010)."""

CREATORS = 16
"""Creators that a room may have beside its author."""
LEVEL_MOST = 2**53 - 1
Level = Annotated[int, Meta(ge=-LEVEL_MOST, le=LEVEL_MOST)]
Levels = Annotated[dict[str, Level], Meta(max_length=256)]
UserLevels = Annotated[dict[WireAuthorId, Level], Meta(max_length=2048)]
Words = Annotated[str, Meta(max_length=512)]


class Membership(StrEnum):
    """How a person stands to a room. Who was never heard of has left."""

    INVITE = "invite"
    JOIN = "join"
    LEAVE = "leave"
    BAN = "ban"
    KNOCK = "knock"


class JoinRule(StrEnum):
    """Who may join."""

    PUBLIC = "public"
    INVITE = "invite"
    KNOCK = "knock"


class Newcomers(StrEnum):
    """What an encrypted room lets those read who join it."""

    FROM_NOW = "from_now"
    """What is said from then on."""
    SHARED = "shared"
    """Also what a member shows them of before."""


class Create(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The first event of a room. Its author and `creators` have infinite power, for ever."""

    version: Count
    creators: Annotated[tuple[WireAuthorId, ...], Meta(max_length=CREATORS)]
    """Creators beside the author."""
    entropy: Annotated[bytes, Meta(min_length=16, max_length=16)]
    """So that no two rooms are the same."""
    newcomers: Newcomers | None = None
    """Encrypted rooms: what those may read who join. None: the room is not encrypted, for ever."""


class Member(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The membership of the person whose id is the event's key."""

    membership: Membership
    reason: Words | None = None
    ticket: Ticket | None = None
    """With a join: the invitation that allows it."""


class Power(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """Who has which level, and which level is asked for. What is absent has Matrix's default."""

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
    """Who may join; the key is empty."""

    rule: JoinRule


class Relay(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The device whose id is the event's key is a relay of the room, or no longer.

    Written by a member of sufficient level, never by the relay itself.
    """

    active: bool
    person: WireAuthorId
    """Whose device it is; as a relay this person authors nothing but its own membership."""
    hints: Hints = ()


class Retention(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """How long every relay of the room keeps an event at most; the key is empty."""

    max_lifetime_ms: Count | None
    """None: until capacity asks for it."""


class Revoked(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """From here on a device of the author is not theirs; the key is the device, in hex."""

    revocation: Revocation


class Plain(Struct, frozen=True, gc=False):
    """The body of an event that only applications read."""


Content: TypeAlias = Create | Member | Power | JoinRules | Relay | Retention | Revoked | Plain


class Redaction(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The body of a redaction: what its author or a moderator takes back."""

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
    """The body of an event as far as nodes must understand it; `InvalidEvent` if it is none."""
    decoder = _DECODERS.get(kind)
    if decoder is None:
        return PLAIN
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidEvent(Reason.MALFORMED, f"the body of a {kind} event: {error}") from error


def create_of(event: Event) -> Create:
    """What the first event of a room says; `InvalidEvent` if it is none."""
    content = content_of(CREATE, event.body)
    if not isinstance(content, Create):
        raise InvalidEvent(Reason.MALFORMED, "no create event")
    return content


def redaction_of(body: bytes) -> Redaction:
    """What a redaction takes back; `InvalidEvent` if its body is none."""
    try:
        return _decode_redaction(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidEvent(Reason.MALFORMED, f"the body of a redaction: {error}") from error


def body_of(content: Struct) -> bytes:
    """The body that says this, alike for what is equal: levels are in the order of what they are for."""
    if isinstance(content, Create) and content.newcomers is None:
        # As nodes write and read it that know of no encryption.
        return _encode((content.version, content.creators, content.entropy))
    if isinstance(content, Power):
        users, events = dict(sorted(content.users.items())), dict(sorted(content.events.items()))
        content = msgspec.structs.replace(content, users=users, events=events)
    return _encode(content)


@lru_cache(maxsize=16_384)
def member_key(person: AuthorId) -> str:
    """The key of a person's membership."""
    return to_text(Sort.PERSON, person)
