"""The node's own commands about rooms: invitations as text, and people as its user knows them.

This module also has the lines that rooms write: events as far as nodes understand them, and who sent them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, assert_never

from msgspec import Meta, Struct
from msgspec.structs import replace

from linnet.api.items import Alarm, EventView, ItemView, WarningView, event_view, item_view
from linnet.core.errors import InvalidEvent
from linnet.core.ids import AuthorId, Contact, DeviceId, TopicId
from linnet.delivery.items import Item, Unreadable
from linnet.event.event import Event
from linnet.identity.text import event_text, person_text, topic_text
from linnet.machine.commands import Command
from linnet.rooms.attachments import attachment_of
from linnet.rooms.commands import Hindrance, KeyStanding, Patience, RoomMade, Theft
from linnet.rooms.event_types import (
    ATTACHMENT,
    CREATE,
    REDACTION,
    Create,
    JoinRules,
    Member,
    Membership,
    Newcomers,
    Plain,
    Power,
    Relay,
    Retention,
    Revoked,
    content_of,
    redaction_of,
)
from linnet.rooms.invitations import Invitation

WEEK = 7 * 86_400.0


class AskToJoin(Command[RoomMade], frozen=True, gc=False):
    """Join a room, or knock, by an invitation or by its id; answered when the room has the event."""

    invitation: Annotated[str, Meta(max_length=32_768)] | None = None
    room: TopicId | None = None
    """The room's id, instead of an invitation; then `contacts` must be given."""
    contacts: Annotated[tuple[Contact, ...], Meta(max_length=16)] = ()
    """Members and relays to ask, besides those that an invitation names."""
    patience: Patience = 20.0
    knock: bool = False
    """Knock instead of joining."""


class InviteToRoom(Command[Invitation], frozen=True, gc=False):
    """Make an invitation, to be handed over as text."""

    room: TopicId
    lifetime: Annotated[float, Meta(gt=0, le=3650 * 86_400)] = WEEK
    """Seconds until it expires."""
    person: AuthorId | None = None
    """The only person who may use it. Absent: any holder."""
    announce: bool = False
    """Whether the person is also invited in the room's state, which a person who has knocked waits for."""


class ListMembers(Command["MembersAre"], frozen=True, gc=False):
    """List everyone who has to do with a room, as this node's user knows them."""

    room: TopicId


class KnownMember(Struct, frozen=True):
    """A person in a room, as this node's user knows them."""

    person: AuthorId
    label: str
    """The label of a device of theirs; anyone may choose any label."""
    membership: Membership
    level: int | None
    """The power level; null: infinite, a creator's."""
    online: bool
    devices: tuple[DeviceId, ...]
    """Their devices that are online."""
    relay: bool
    key_devices: tuple[DeviceId, ...] = ()
    """Their devices that hold the room's keys, if it is encrypted."""
    verified: bool = False
    """Whether the user of this node has compared safety numbers with them."""


class MembersAre(Struct, frozen=True):
    """Everyone who has to do with a room."""

    room: TopicId
    members: tuple[KnownMember, ...]


class ReportSecurity(Command["SecurityReport"], frozen=True, gc=False):
    """Report who holds a room's keys, what the next message waits for, and what a thief could read."""

    room: TopicId


class KeyHolder(Struct, frozen=True):
    """A device that holds keys of a room, or should."""

    person: AuthorId
    label: str
    """The label of the device; anyone may choose any label."""
    device: DeviceId
    """The device's name in events."""
    standing: KeyStanding
    """Whether it `holds` keys, or why not, or holds them and should not (`surplus`)."""
    key_age: float | None
    """Seconds since its present keys began."""
    pending: int
    """Changes of keys that it has not acknowledged yet."""
    is_this: bool
    is_verified: bool
    """Whether the user has compared safety numbers with the device's person."""


class PersonWarning(Struct, frozen=True):
    """A warning that the user should look at."""

    alarm: Alarm
    person: AuthorId
    """The person it is about."""
    label: str
    other: AuthorId | None = None
    """The person who was known by this name before."""
    device: DeviceId | None = None


class SecurityReport(Struct, frozen=True):
    """The security of a room: who holds its keys, and what they protect."""

    room: TopicId
    encrypted: bool
    """False: carriers can read the room, and the other fields say nothing."""
    newcomers: Newcomers | None
    """What people who join may read."""
    holds_keys: bool
    """Whether this device holds keys."""
    devices: tuple[KeyHolder, ...]
    hindrances: tuple[Hindrance, ...]
    """Everything that is done or awaited before the next message."""
    would_wait: bool
    """Whether the next message would have to wait."""
    heal_pending: bool
    """Whether our keys must be renewed first, since a removed person might follow them."""
    renewal_in: float | None
    """Seconds until our own keys are renewed."""
    unread: dict[str, int]
    """The number of messages that cannot be read here, by reason."""
    theft: Theft | None
    warnings: tuple[PersonWarning, ...]
    """All warnings about people in the room, shown before or not."""


class LookUpPerson(Command["PersonReport"], frozen=True, gc=False):
    """Report what this node knows of a person, and the safety number to compare with them."""

    person: AuthorId


class VerifyPerson(Command["PersonReport"], frozen=True, gc=False):
    """Store that the user has compared safety numbers with a person, or take that back."""

    person: AuthorId
    is_verified: bool


class PersonReport(Struct, frozen=True):
    """What this node knows of a person."""

    person: AuthorId
    labels: tuple[str, ...]
    """The labels that their devices use or used, the oldest first."""
    devices: tuple[DeviceId, ...]
    """Their devices' names in events, the oldest first."""
    first_seen: float | None
    verified_at: float | None
    """When the user last confirmed that the safety numbers are equal."""
    safety_number: str | None
    """The number to compare with them by voice or side by side; null for ourselves."""
    safety_words: str | None
    """The safety number in words."""


Content = dict[str, Any]
"""The decoded body of an event of a kind that nodes understand."""

LabelOf = Callable[[AuthorId, DeviceId], str]
"""Returns the label of a device; empty if it is not known."""


def room_item_view(item: Item, label_of: LabelOf) -> ItemView:
    """Return an item of a room as a line."""
    if isinstance(item, Unreadable):
        unread, label = item_view(item), label_of(item.event.author, item.event.device)
        return replace(unread, label=label or None) if isinstance(unread, EventView) else unread
    if not isinstance(item, Event):
        return item_view(item)
    return replace(room_event_view(item), label=label_of(item.author, item.device) or None)


def room_event_view(event: Event) -> EventView:
    """Return an event of a room as a line, with its decoded body."""
    content = content_view(event.kind, event.body)
    view = event_view(event)
    # The create event cannot name the room: its id is the room's.
    topic = topic_text(TopicId(event.id)) if event.kind == CREATE else view.topic
    return replace(view, topic=topic, text=view.text if content is None else None, content=content)


def warning_view(warning: PersonWarning) -> WarningView:
    """Return a warning about a person as a line."""
    other, device = warning.other, warning.device
    return WarningView(
        warning.alarm,
        person_text(warning.person),
        warning.label,
        None if other is None else person_text(other),
        None if device is None else device.hex(),
    )


def content_view(kind: str, body: bytes) -> Content | None:
    """Return the decoded body of an event; None for kinds that only applications read."""
    try:
        if kind == ATTACHMENT:
            found = attachment_of(body)
            return {"name": found.file_name, "size": found.size, "media": found.media}
        if kind == REDACTION:
            redaction = redaction_of(body)
            return {"event": event_text(redaction.event), "reason": redaction.reason}
        content = content_of(kind, body)
    except InvalidEvent as error:
        return {"malformed": error.detail}
    match content:
        case Create(version, creators):
            return {"version": version, "creators": list(map(person_text, creators))}
        case Member(membership, reason, ticket):
            inviter = None if ticket is None else person_text(ticket.inviter)
            return {"membership": membership.value, "reason": reason, "invited_by": inviter}
        case Power():
            return power_view(content)
        case JoinRules(rule):
            return {"rule": rule.value}
        case Relay(active, person, hints):
            return {"active": active, "person": person_text(person), "hints": list(hints)}
        case Retention(lifetime):
            return {"max_lifetime_ms": lifetime}
        case Revoked(revocation):
            return {"person": person_text(revocation.person), "device": revocation.device.hex()}
        case Plain():
            return None
        case _:
            assert_never(content)


def power_view(power: Power) -> Content:
    """Return the power levels; an absent one has its default."""
    said = {
        name: getattr(power, name)
        for name in ("users_default", "events_default", "state_default", "ban", "kick", "redact", "invite")
    }
    users = {person_text(person): level for person, level in power.users.items()}
    return {"users": users, "events": dict(power.events)} | {
        name: level for name, level in said.items() if level is not None
    }
