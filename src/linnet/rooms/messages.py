"""What members and relays of a room tell each other (tags 50 to 79).

Units on their way through the overlay travel as `linnet.delivery.messages.Data`, as everywhere. The
create event is the one unit that does not carry its room as topic, so it travels only in pages that
name the room.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from linnet.core.ids import (
    Contact,
    Count,
    Hints,
    WireAuthorId,
    WireEventId,
    WireSignature,
    WireTopicId,
)
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.delivery.causal_messages import CausalMessage, Digest
from linnet.delivery.messages import Cards, Units
from linnet.identity.cards import Card
from linnet.rooms.ticket import Ticket

CHUNK_BYTES = 128 * 1024
"""Bytes of one piece of an attachment: several fit a frame, and a lost one costs little."""

RoomHeads = Annotated[tuple[WireEventId, ...], Meta(max_length=256)]
Contacts = Annotated[tuple[Contact, ...], Meta(max_length=64)]


class Greet(Message, frozen=True, tag=50):
    """The first word of a member or relay about a room on a link: who I am, and how far I am.

    Said by both ends, again when heads have changed and it is quiet. Whoever is not (yet) a member shows
    a ticket instead and is served the control DAG alone.
    """

    room: WireTopicId
    card: Card
    hints: Hints
    """Where this device may be dialled."""
    heads: RoomHeads
    """Heads of the event DAG, as far as they are shown. Empty from a relay."""
    control: RoomHeads
    """Heads of the control DAG."""
    events: Count
    """How many events it knows: for the estimate of what is the cheaper way to synchronise."""
    relay: bool
    contacts: Contacts
    """Other devices of members, and where they were met last."""
    ticket: Ticket | None
    answer: bool
    """Whether it answers a greeting; an answer is not answered."""


class Refused(Message, frozen=True, tag=51):
    """I do not take this event, or, without an event, have nothing to say to you about this room."""

    room: WireTopicId
    event: WireEventId | None
    reason: Reason
    detail: Annotated[str, Meta(max_length=200)]


class AskControl(Message, frozen=True, tag=57):
    """Please send the control events that lie beyond these heads; all of them, if there are none."""

    room: WireTopicId
    request: Count
    heads: RoomHeads
    ticket: Ticket | None
    card: Card | None = None
    """Who asks, if it is not (yet) a member: whom the room has invited needs no ticket."""


class ControlPage(Message, frozen=True, tag=58):
    """A page of control events in causal order. The asker asks again until `more` is off."""

    room: WireTopicId
    request: Count
    units: Units
    cards: Cards
    more: bool
    heads: RoomHeads
    relays: Contacts
    reason: Reason | None
    """Why there is nothing, if so."""


class RoomReceipt(Message, frozen=True, tag=59):
    """A signed statement: this device has everything up to these heads, durably. The latest one counts.

    It is no event, never suppressed because another's covers the same, gossiped, and kept by relays.
    """

    room: WireTopicId
    card: Card
    at_ms: Count
    heads: Annotated[tuple[WireEventId, ...], Meta(max_length=64)]
    off: bool
    """Whether this device says no more than that it gives no receipts."""
    sig: WireSignature


class RelayCursor(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A place in what one relay keeps. Another epoch: it has lost what it had."""

    epoch: Annotated[bytes, Meta(min_length=8, max_length=8)]
    position: Count


class RelaySend(Message, frozen=True, tag=60):
    """To a relay, from a peer: please keep these and pass them on to the room's other relays."""

    room: WireTopicId
    request: Count
    units: Units
    cards: Cards


class RelayForward(Message, frozen=True, tag=61):
    """From relay to relay: keep these; they are never forwarded again."""

    room: WireTopicId
    request: Count
    units: Units
    cards: Cards


class RelayOutcome(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """What became of one event at a relay."""

    event: WireEventId
    cursor: RelayCursor | None
    """Where it is kept, also if it was kept before; None: it is not."""
    reason: Reason | None
    """Why it is not kept, or what else there is to say of what is: ``soft_failed``, or ``duplicate`` if it
    was kept before."""
    missing: Annotated[tuple[WireEventId, ...], Meta(max_length=32)]
    """Control events that the relay lacks to judge it: send them first, then this again."""


class RelayTaken(Message, frozen=True, tag=62):
    """The answer to `RelaySend` and `RelayForward`, once what was kept is durable."""

    room: WireTopicId
    request: Count
    outcomes: Annotated[tuple[RelayOutcome, ...], Meta(max_length=1024)]
    reason: Reason | None
    """Why nothing of it was looked at."""


class Resync(Message, frozen=True, tag=63):
    """What do you keep that I have not seen? From a member, to a relay."""

    room: WireTopicId
    request: Count
    cursor: RelayCursor | None
    """None: from the oldest that it keeps."""
    limit: Annotated[int, Meta(ge=1, le=1024)]
    follow: bool
    """Whether what comes later is wanted too, as it comes, until the link ends. Pages that follow carry
    this request's number, and begin once `more` is off."""


class Tombstone(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """An event that a relay kept and keeps no longer."""

    event: WireEventId
    reason: Reason
    """``retention`` or ``quota``."""


class ResyncPage(Message, frozen=True, tag=64):
    """A page of what a relay keeps, in the order in which it came."""

    room: WireTopicId
    request: Count
    units: Units
    cards: Cards
    receipts: Annotated[tuple[RoomReceipt, ...], Meta(max_length=256)]
    tombstones: Annotated[tuple[Tombstone, ...], Meta(max_length=1024)]
    """Of the asker's own events, that it may tell what expired."""
    next: RelayCursor | None
    more: bool
    oldest: RelayCursor | None
    control: RoomHeads
    """Heads of the relay's control DAG: whoever knows more sends it."""
    reason: Reason | None
    """Why there is no page: ``not_a_member``, ``banned``, ``unknown_room``, ``cursor_expired``…"""
    after: RelayCursor | None = None
    """Of a page that follows unasked: `next` of the page that was sent before it to this asker, or the
    cursor that was asked with. Who is elsewhere has lost one on the way, and asks again."""


class RelayAsk(Message, frozen=True, tag=65):
    """Would you be a relay of this room? From a member who may say so; its control DAG says that it may."""

    room: WireTopicId
    request: Count
    contacts: Contacts
    """Members and relays that hold the control DAG."""
    card: Card | None = None
    """Who asks, for relays that serve certain people; a greeting on the same link says it too."""


class RelayAnswer(Message, frozen=True, tag=66):
    """Whether it will: then it fetches the control DAG and joins."""

    room: WireTopicId
    request: Count
    reason: Reason | None
    """Why not: ``not_allowed`` (its policy), ``quota`` (it is full)."""
    person: WireAuthorId
    """Whose device the relay is: to be named in the room's state."""
    card: Card | None = None
    """The proof of it: who is named as a relay may say nothing else in the room."""


class RelayInfo(Message, frozen=True, tag=67):
    """How a relay is doing, told on request and with its greeting."""

    rooms: Count
    kept_events: Count
    kept_bytes: Count
    capacity_bytes: Count
    clock_ms: Count
    request: bool
    """Whether this only asks."""


class ChunkWant(Message, frozen=True, tag=70):
    """Please send these pieces of attachments of a room."""

    room: WireTopicId
    digests: Annotated[tuple[Digest, ...], Meta(min_length=1, max_length=16)]


class ChunkIs(Message, frozen=True, tag=71):
    """A piece, or why there is none."""

    room: WireTopicId
    digest: Digest
    data: Annotated[bytes, Meta(max_length=CHUNK_BYTES)] | None
    reason: Reason | None


class ChunkPut(Message, frozen=True, tag=72):
    """To a relay: please keep this piece for the room."""

    room: WireTopicId
    digest: Digest
    data: Annotated[bytes, Meta(max_length=CHUNK_BYTES)]


class ChunkTaken(Message, frozen=True, tag=73):
    """Whether a piece is kept, durably."""

    room: WireTopicId
    digest: Digest
    reason: Reason | None
    """Why it is not: ``quota``, ``not_a_member``…"""


ToRelay: TypeAlias = RelaySend | RelayForward | Resync | RelayAsk | RelayInfo
FromRelay: TypeAlias = RelayTaken | ResyncPage | RelayAnswer
ChunkMessage: TypeAlias = ChunkWant | ChunkIs | ChunkPut | ChunkTaken
RoomMessage: TypeAlias = (
    Greet
    | Refused
    | CausalMessage
    | AskControl
    | ControlPage
    | RoomReceipt
    | ToRelay
    | FromRelay
    | ChunkMessage
)
