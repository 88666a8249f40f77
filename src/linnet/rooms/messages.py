"""The messages between members and relays of a room (tags 50 to 79 and 195 to 197).

Units that are flooded travel as `linnet.delivery.messages.Data`, as everywhere. The create event is the one
unit that does not carry its room as topic, so it travels only in pages that name the room.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from linnet.core.ids import (
    Contact,
    Count,
    Hints,
    TopicId,
    WireAuthorId,
    WireEventId,
    WirePeerId,
    WireSignature,
    WireTopicId,
)
from linnet.core.messages import Message, TopicMessage
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.delivery.messages import Cards, CausalMessage, Digest, Units
from linnet.identity.cards import Card
from linnet.rooms.invitations import Ticket
from linnet.rooms.relay_statements import RelayFault, RelayStatement
from linnet.rooms.stamps import Stamp, StampPrice

CHUNK_BYTES = 128 * 1024
"""The most bytes of one piece of an attachment: several fit a frame, and a lost one costs little."""

ASKED = 64
"""The most events in one question about what a relay took."""
SHOWN = 4
"""The most statements in one answer to it."""

HEADS = 256
"""The most heads of a room in one message."""
RoomHeads = Annotated[tuple[WireEventId, ...], Meta(max_length=HEADS)]
Contacts = Annotated[tuple[Contact, ...], Meta(max_length=64)]


class AboutRoom(TopicMessage, frozen=True):
    """Base of messages about a room, to a member or a relay."""

    room: WireTopicId

    @property
    def topic(self) -> TopicId:
        """See `TopicMessage.topic`."""
        return self.room


class RoomTimer(Timer, frozen=True, gc=False):
    """Base of the timers of one room."""

    room: TopicId


class Greet(AboutRoom, frozen=True, tag=50):
    """The first message of a member or relay about a room on a link: its identity and its heads.

    Sent by both ends, and again when heads have changed and it is quiet. A peer that is not (yet) a member
    shows a ticket instead and is served the control DAG alone.
    """

    card: Card
    hints: Hints
    """Addresses of this device."""
    heads: RoomHeads
    """Heads of the event DAG, as far as the peer may see them. Empty from a relay."""
    control: RoomHeads
    """Heads of the control DAG."""
    events: Count
    """The number of events that it knows, to estimate the cheaper way to synchronise."""
    relay: bool
    contacts: Contacts
    """Relays and other devices of members, with the addresses at which they were met last."""
    ticket: Ticket | None
    answer: bool
    """Whether it answers a greeting; an answer is not answered."""
    compares: bool = False
    """Whether it understands `AskStatements`, `StatementsAre` and `RelayProof`."""


class Refused(AboutRoom, frozen=True, tag=51):
    """Refuses an event, or, without one, all that the peer asks or tells about this room."""

    event: WireEventId | None
    reason: Reason
    detail: Annotated[str, Meta(max_length=200)]


class AskControl(AboutRoom, frozen=True, tag=57):
    """Asks for the control events beyond these heads; for all of them, if there are no heads."""

    request: Count
    heads: RoomHeads
    ticket: Ticket | None
    card: Card | None = None
    """The asker's card, if it is not (yet) a member: an invited person needs no ticket."""


class ControlPage(AboutRoom, frozen=True, tag=58):
    """A page of control events in causal order. The asker asks again until `more` is off."""

    request: Count
    units: Units
    cards: Cards
    more: bool
    heads: RoomHeads
    relays: Contacts
    reason: Reason | None
    """Why the page is empty; None if the request is granted."""


class RoomReceipt(AboutRoom, frozen=True, tag=59):
    """A signed statement that a device durably has everything up to these heads. The latest one counts.

    It is no event. It is gossiped, kept by relays, and never suppressed because another's covers the same.
    """

    card: Card
    at_ms: Count
    heads: Annotated[tuple[WireEventId, ...], Meta(max_length=64)]
    off: bool
    """Whether this device only states that it gives no receipts."""
    sig: WireSignature


class RelayCursor(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A position in the store of one relay. A new epoch means that the relay has lost its store."""

    epoch: Annotated[bytes, Meta(min_length=8, max_length=8)]
    position: Count


class RelaySend(AboutRoom, frozen=True, tag=60):
    """Asks a relay to keep these events and pass them on to the room's other relays."""

    request: Count
    units: Units
    cards: Cards
    signed: bool = False
    """Whether a signed statement is wanted with the answer."""


class RelayForward(AboutRoom, frozen=True, tag=61):
    """Asks a relay, from another one, to keep these events; they are never forwarded again."""

    request: Count
    units: Units
    cards: Cards


class RelayOutcome(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The outcome of one event at a relay."""

    event: WireEventId
    cursor: RelayCursor | None
    """The position where it is kept, also if it was kept before; None: it is not kept."""
    reason: Reason | None
    """Why it is not kept; of a kept event ``soft_failed``, or ``duplicate`` if it was kept before."""
    missing: Annotated[tuple[WireEventId, ...], Meta(max_length=32)]
    """Control events that the relay needs to judge it: send them first, then this one again."""


class RelayTaken(AboutRoom, frozen=True, tag=62):
    """The answer to `RelaySend` and `RelayForward`, once the kept events are durable."""

    request: Count
    outcomes: Annotated[tuple[RelayOutcome, ...], Meta(max_length=1024)]
    reason: Reason | None
    """Why the request was refused as a whole."""
    said: RelayStatement | None = None
    """The relay's signed statement on these events, if it was asked for."""


class Resync(AboutRoom, frozen=True, tag=63):
    """Asks a relay, from a member, for the stored events that the member has not seen."""

    request: Count
    cursor: RelayCursor | None
    """The position to begin after; None: from the oldest stored event."""
    limit: Annotated[int, Meta(ge=1, le=1024)]
    follow: bool
    """Whether new events are wanted too, as they come, until the link ends. Their pages carry this
    request's number, and begin once `more` is off."""
    signed: bool = False
    """Whether a signed statement is wanted with each page."""


class Tombstone(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """An event that a relay kept and keeps no longer."""

    event: WireEventId
    reason: Reason
    """``retention`` or ``quota``."""


class ResyncPage(AboutRoom, frozen=True, tag=64):
    """A page of a relay's stored events, in the order in which they came."""

    request: Count
    units: Units
    cards: Cards
    receipts: Annotated[tuple[RoomReceipt, ...], Meta(max_length=256)]
    tombstones: Annotated[tuple[Tombstone, ...], Meta(max_length=1024)]
    """Tombstones of the asker's own events, which show it what expired."""
    next: RelayCursor | None
    more: bool
    oldest: RelayCursor | None
    control: RoomHeads
    """Heads of the relay's control DAG: a member that knows more sends it."""
    reason: Reason | None
    """Why there is no page: ``not_a_member``, ``banned``, ``unknown_room``, ``cursor_expired``…"""
    after: RelayCursor | None = None
    """In a page that was pushed: `next` of the page before it to this asker, or the cursor of its request.
    An asker with another cursor has lost a page on the way, and asks again."""
    said: RelayStatement | None = None
    """The relay's signed statement on this part of its log, if it was asked for."""


class RelayAsk(AboutRoom, frozen=True, tag=65):
    """Asks a node to become a relay of this room, from a member that may name relays by the control DAG."""

    request: Count
    contacts: Contacts
    """Members and relays that hold the control DAG."""
    card: Card | None = None
    """The asker's card, for relays that serve certain people; a greeting on the same link shows it too."""
    stamp: Stamp | None = None
    """The work that an open relay asks for a new room."""


class RelayAnswer(AboutRoom, frozen=True, tag=66):
    """The node's answer to `RelayAsk`; if it agrees, it fetches the control DAG and joins."""

    request: Count
    reason: Reason | None
    """Why it declines: ``not_allowed`` (its policy), ``quota`` (it is full); None if it agrees."""
    person: WireAuthorId
    """The owner of the relay's device, to be named in the room's state."""
    card: Card | None = None
    """The proof of ownership: a person named as a relay's owner may send nothing else in the room."""
    price: StampPrice | None = None
    """With ``not_allowed``: it would serve the room for a stamp of this price."""


class RelayInfo(Message, frozen=True, tag=67):
    """The load of a relay, sent on request and with its greeting."""

    rooms: Count
    kept_events: Count
    kept_bytes: Count
    capacity_bytes: Count
    clock_ms: Count
    request: bool
    """Whether this message only asks for the other's load."""


class ChunkWant(AboutRoom, frozen=True, tag=70):
    """Asks for these pieces of attachments of a room."""

    digests: Annotated[tuple[Digest, ...], Meta(min_length=1, max_length=16)]


class ChunkIs(AboutRoom, frozen=True, tag=71):
    """A piece, or the reason why it is not given."""

    digest: Digest
    data: Annotated[bytes, Meta(max_length=CHUNK_BYTES)] | None
    reason: Reason | None


class ChunkPut(AboutRoom, frozen=True, tag=72):
    """Asks a relay to keep this piece for the room."""

    digest: Digest
    data: Annotated[bytes, Meta(max_length=CHUNK_BYTES)]


class ChunkTaken(AboutRoom, frozen=True, tag=73):
    """Tells whether a piece is durably kept."""

    digest: Digest
    reason: Reason | None
    """Why it is not kept: ``quota``, ``not_a_member``…; None if it is."""


class AskStatements(AboutRoom, frozen=True, tag=195):
    """Asks a member for signed statements of a relay that say it took one of these events.

    The asker has read this relay, and learned of the events from others only.
    """

    relay: WirePeerId
    events: Annotated[tuple[WireEventId, ...], Meta(min_length=1, max_length=ASKED)]


class StatementsAre(AboutRoom, frozen=True, tag=196):
    """The answer to `AskStatements`; it is empty if the member has none."""

    relay: WirePeerId
    statements: Annotated[tuple[RelayStatement, ...], Meta(max_length=SHOWN)]


class RelayProof(AboutRoom, frozen=True, tag=197):
    """Two statements of a relay that contradict each other. Each member passes them on once."""

    relay: WirePeerId
    fault: RelayFault


ToRelay: TypeAlias = RelaySend | RelayForward | Resync | RelayAsk | RelayInfo
FromRelay: TypeAlias = RelayTaken | ResyncPage | RelayAnswer
ChunkMessage: TypeAlias = ChunkWant | ChunkIs | ChunkPut | ChunkTaken
ComparingMessage: TypeAlias = AskStatements | StatementsAre | RelayProof
"""Messages between members that compare what relays have signed."""
RoomTopicMessage: TypeAlias = (
    Greet
    | Refused
    | CausalMessage
    | AskControl
    | ControlPage
    | RoomReceipt
    | RelaySend
    | RelayForward
    | Resync
    | RelayAsk
    | FromRelay
    | ChunkMessage
    | ComparingMessage
)
"""Messages about one room."""

RoomMessage: TypeAlias = RoomTopicMessage | RelayInfo
