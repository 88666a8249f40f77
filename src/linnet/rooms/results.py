"""What the application is answered about rooms."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

from linnet.core.ids import AuthorId, Contact, DeviceId, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.causal_messages import Given
from linnet.delivery.commands import Declined, Done
from linnet.event.event import Event
from linnet.rooms.content import JoinRule, Membership, Power
from linnet.rooms.messages import ControlPage, FromRelay, RelayInfo
from linnet.rooms.ticket import Ticket


class Fate(StrEnum):
    """What the sender knows of an event at one member."""

    PENDING = "pending"
    AT_RELAY = "at_relay"
    DELIVERED = "delivered"
    EXPIRED = "expired"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    """Receipts are switched off there."""


class MemberFate(Struct, frozen=True, gc=False):
    """One line of the ledger."""

    person: AuthorId
    fate: Fate
    at: float | None
    """When the sender learned it."""
    relays: tuple[PeerId, ...]
    """With ``at_relay``: those that hold it. With ``expired``: those that held it."""
    reason: Reason | None


class EventFates(Struct, frozen=True, gc=False):
    """What is known of one of our events."""

    event: EventId
    kind: str
    time: int
    members: tuple[MemberFate, ...]


class LedgerIs(Struct, frozen=True, gc=False):
    """The delivery ledger."""

    room: TopicId
    events: tuple[EventFates, ...]


class RoomMade(Struct, frozen=True, gc=False):
    """The room is there, and we are in it (or have knocked)."""

    room: TopicId
    event: EventId
    """Our join."""


class TicketMade(Struct, frozen=True, gc=False):
    """An invitation: the ticket, and where members and relays of the room may be dialled."""

    ticket: Ticket
    contacts: tuple[Contact, ...]
    name: str | None


class Sent(Struct, frozen=True, gc=False):
    """They are in the room and durable here; to whom they went at once."""

    room: TopicId
    ids: tuple[EventId, ...]
    neighbors: int
    """Online members that they were sent to."""
    relays: tuple[PeerId, ...]
    """Relays that they were sent to; whether they took them stands in the ledger."""


class Reading(Struct, frozen=True, gc=False):
    """The subscription is on."""

    room: TopicId
    resumed: bool


class StateEntry(Struct, frozen=True, gc=False):
    """One value of a room's state."""

    kind: str
    key: str
    event: Event


class RoomMember(Struct, frozen=True, gc=False):
    """A person in a room."""

    person: AuthorId
    membership: Membership
    level: int | None
    """None: infinite, a creator's."""
    online: bool
    devices: tuple[DeviceId, ...]
    relay: bool


class StateIs(Struct, frozen=True, gc=False):
    """The resolved state of a room."""

    room: TopicId
    entries: tuple[StateEntry, ...]
    members: tuple[RoomMember, ...]
    power: Power
    rule: JoinRule
    heads: tuple[EventId, ...]
    control: tuple[EventId, ...]
    digest: bytes
    """SHA-256 over the sorted state: equal where rooms agree."""


class RelayStatus(Struct, frozen=True, gc=False):
    """A relay of a room, as a member sees it."""

    relay: PeerId
    hints: tuple[str, ...]
    up: bool
    chosen: bool
    rtt: float | None
    load: float | None
    """Share of its capacity that is used, as it says."""
    failure: Reason | None


class RoomStatus(Struct, frozen=True, gc=False):
    """How one room stands at this node."""

    room: TopicId
    name: str | None
    membership: Membership
    relay: bool
    """Whether this node serves it as a relay."""
    members: int
    online: tuple[PeerId, ...]
    relays: tuple[RelayStatus, ...]
    events: int
    control_events: int
    heads: int
    waiting: int
    """Events that wait for their dependencies."""
    missing: int
    """Dependencies that are waited for."""
    soft_failed: int
    rejected: int
    unsent: int
    """Events of ours that no relay and no member has."""
    encrypted: bool = False
    """Whether only members can read what is said: as the event says that founded the room, for ever."""


class RoomsAre(Struct, frozen=True, gc=False):
    """Every room of this node."""

    rooms: tuple[RoomStatus, ...]


class RelayKnowledge(Struct, frozen=True, gc=False):
    """What a relay knows of one person in one room: all of it."""

    person: AuthorId
    membership: Membership
    control_events: int
    kept_events: int
    kept_bytes: int
    devices: int
    last_event_ms: int | None
    last_seen: float | None
    """When a device of theirs asked this relay for something."""
    receipts: int
    key_devices: int = 0
    """Devices of theirs that take part in the room's keys: of them it keeps how far they have read."""


class RelayRoomReport(Struct, frozen=True, gc=False):
    """What a relay knows of one room."""

    room: TopicId
    control_events: int
    kept_events: int
    kept_bytes: int
    chunk_bytes: int
    oldest: float | None
    expired: int
    evicted: int
    plain_state_events: int
    """Names, topics: events of state that are kept only until they expire, as messages are."""
    people: tuple[RelayKnowledge, ...]
    group_events: int = 0
    """Of those kept, operations on keys, which wait for devices that lack them."""
    group_bytes: int = 0


class RelayReport(Struct, frozen=True, gc=False):
    """What this relay knows."""

    epoch: bytes
    rooms: tuple[RelayRoomReport, ...]


class RelayReplies(Struct, frozen=True, gc=False):
    """What the relay answers."""

    messages: tuple[FromRelay | Given | ControlPage | RelayInfo, ...]


class ChunkFetched(Struct, frozen=True, gc=False):
    """A piece of an attachment, whose digest was checked."""

    data: bytes


RoomResult: TypeAlias = (
    RoomMade
    | TicketMade
    | Sent
    | Reading
    | RoomsAre
    | StateIs
    | LedgerIs
    | RelayReport
    | RelayReplies
    | ChunkFetched
    | Done
    | Declined
)
