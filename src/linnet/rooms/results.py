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
from linnet.rooms.content import JoinRule, Membership, Newcomers, Power
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
    refreshed: int | None = None
    """We were in it already: of so many devices it was told where they are, and they are tried there."""


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
    """Those that are online."""
    relay: bool
    key_devices: tuple[DeviceId, ...] = ()
    """Those that hold the room's keys, where it is encrypted."""


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


class KeyStanding(StrEnum):
    """How a device stands to the keys of an encrypted room."""

    HOLDS = "holds"
    SURPLUS = "surplus"
    """It holds keys and should not; it is removed before the next message."""
    TO_BE_ADDED = "to_be_added"
    """It is in the room, can be reached, and is let in by whoever is online or speaks next."""
    NO_PREKEYS = "no_prekeys"
    """It is in the room and has told nothing to reach it by yet."""
    USED_PREKEYS = "used_prekeys"
    """What it told was used when it was let in before: it has to come with new ones."""
    EXPIRED_PREKEYS = "expired_prekeys"
    """What it told is too old to be used: it has to come with new ones."""
    UNKNOWN = "unknown"
    """This device holds no keys itself, and cannot know who does."""


class DeviceKeys(Struct, frozen=True, gc=False):
    """A device that holds keys of a room, or should."""

    person: AuthorId
    device: DeviceId
    standing: KeyStanding
    age: float | None
    """Seconds since its present keys began; None if this device has none of it."""
    pending: int
    """Changes of keys that it has not acknowledged."""
    ours: bool
    """Whether it is this device."""


class Hindrance(StrEnum):
    """What stands before our next message. Only the first three make it wait; the rest is done at once."""

    NOT_LET_IN = "not_let_in"
    OUT_OF_STEP = "out_of_step"
    """Our keys fit those of the others no more: we have to be let in anew."""
    NEWCOMERS = "newcomers"
    """Those who just joined have not told how to reach them."""
    ACKS = "acks"
    SURPLUS = "surplus"
    HEAL = "heal"
    MISSING = "missing"


class Theft(Struct, frozen=True, gc=False):
    """What a thief of this device could read now."""

    messages: int
    """Kept here in the clear, for their reader."""
    late_keys: int
    """Keys of messages that were sent and have not come here."""
    member_secrets: int
    """Secrets that others' next keys grow from, kept until those have acknowledged."""
    shared_keys: int
    """Keys of messages, kept to be shown to newcomers."""
    follows: int
    """Devices whose next messages could be read, until we renew our keys or are removed."""


class SecurityIs(Struct, frozen=True, gc=False):
    """Who holds the keys of a room, and what they protect."""

    room: TopicId
    newcomers: Newcomers | None
    """What those may read who join; None: the room is not encrypted, and whoever carries it can read it."""
    is_member: bool = False
    """Whether this device holds keys."""
    devices: tuple[DeviceKeys, ...] = ()
    hindrances: tuple[Hindrance, ...] = ()
    renewal: float | None = None
    """Seconds until our own keys are renewed; None without keys."""
    unread: tuple[tuple[Reason, int], ...] = ()
    """How many messages cannot be read here, by why."""
    theft: Theft | None = None
    """None: nothing of the room is secret."""


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
    | SecurityIs
    | LedgerIs
    | RelayReport
    | RelayReplies
    | ChunkFetched
    | Done
    | Declined
)
