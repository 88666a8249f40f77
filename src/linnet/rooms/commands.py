"""The commands of the application for rooms and for the relay role, and their results."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Generic

from msgspec import Meta, Struct

from linnet.core.ids import AuthorId, Contact, DeviceId, EventId, PeerId, TopicId
from linnet.core.limits import KEY_CHARS, KIND_CHARS, STREAM_NAME_CHARS
from linnet.core.reasons import Reason
from linnet.delivery.messages import Given, Want
from linnet.delivery.receipts import Fate
from linnet.event.event import MESSAGE, Event
from linnet.identity.cards import Revocation
from linnet.machine.commands import Command, Done, Hex, R_co
from linnet.rooms.event_types import LEVEL_MOST, JoinRule, Membership, Newcomers, Power
from linnet.rooms.invitations import Ticket
from linnet.rooms.messages import (
    CHUNK_BYTES,
    AskControl,
    ControlPage,
    FromRelay,
    RelayForward,
    RelayInfo,
    RelaySend,
    Resync,
)
from linnet.rooms.stamps import Stamp, StampPrice


class MemberFate(Struct, frozen=True, gc=False):
    """The fate of one event at one member: a line of the delivery ledger."""

    person: AuthorId
    fate: Fate
    at: float | None
    """The time at which the sender learned it."""
    relays: tuple[PeerId, ...]
    """With ``at_relay``: the relays that hold the event. With ``expired``: those that held it."""
    reason: Reason | None


class EventFates(Struct, frozen=True, gc=False):
    """The fates of one of our events at the members."""

    event: EventId
    kind: str
    time: int
    members: tuple[MemberFate, ...]


class LedgerIs(Struct, frozen=True, gc=False):
    """The delivery ledger."""

    room: TopicId
    events: tuple[EventFates, ...]


class RoomMade(Struct, frozen=True, gc=False):
    """The room exists here, and we have joined it (or have knocked)."""

    room: TopicId
    event: EventId
    """Our join."""
    refreshed: int | None = None
    """If we were in the room already: the number of devices whose given addresses are now tried."""


class TicketMade(Struct, frozen=True, gc=False):
    """An invitation: the ticket, and addresses of members and relays of the room."""

    ticket: Ticket
    contacts: tuple[Contact, ...]
    name: str | None


class Sent(Struct, frozen=True, gc=False):
    """The events are in the room and durable here, and were sent at once to these peers."""

    room: TopicId
    ids: tuple[EventId, ...]
    neighbors: int
    """The number of online members that they were sent to."""
    relays: tuple[PeerId, ...]
    """The relays that they were sent to; the ledger shows whether these took them."""


class Reading(Struct, frozen=True, gc=False):
    """The subscription has begun."""

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
    """The power level; None: the infinite one of a creator."""
    online: bool
    devices: tuple[DeviceId, ...]
    """The devices that are online."""
    relay: bool
    key_devices: tuple[DeviceId, ...] = ()
    """The devices that hold the room's keys, if it is encrypted."""


class StateIs(Struct, frozen=True, gc=False):
    """The resolved state of a room."""

    room: TopicId
    entries: tuple[StateEntry, ...]
    members: tuple[RoomMember, ...]
    power: Power
    rule: JoinRule
    heads: tuple[EventId, ...]
    control: tuple[EventId, ...]
    digest: Hex
    """SHA-256 over the sorted state: equal at nodes that agree."""


class KeyStanding(StrEnum):
    """The standing of a device with respect to the keys of an encrypted room."""

    HOLDS = "holds"
    SURPLUS = "surplus"
    """It holds keys and should not; it is removed before the next message."""
    TO_BE_ADDED = "to_be_added"
    """It is in the room and can be added; a member that is online or sends next does so."""
    NO_PREKEYS = "no_prekeys"
    """It is in the room and has published no prekeys yet."""
    USED_PREKEYS = "used_prekeys"
    """Its prekeys were used when it was added before: it has to publish new ones."""
    EXPIRED_PREKEYS = "expired_prekeys"
    """Its prekeys are too old to be used: it has to publish new ones."""
    UNKNOWN = "unknown"
    """This device holds no keys itself, and cannot know which devices do."""


class DeviceKeys(Struct, frozen=True, gc=False):
    """A device that holds keys of a room, or should."""

    person: AuthorId
    device: DeviceId
    standing: KeyStanding
    age: float | None
    """Seconds since its present keys began; None if this device knows none of its keys."""
    pending: int
    """The number of key changes that it has not acknowledged."""
    ours: bool
    """Whether it is this device."""


class Hindrance(StrEnum):
    """A task that has to be done before our next message. Only the first three make the message wait."""

    NOT_LET_IN = "not_let_in"
    OUT_OF_STEP = "out_of_step"
    """Our keys no longer match those of the others: we have to be added anew."""
    NEWCOMERS = "newcomers"
    """People who just joined have not published prekeys yet."""
    ACKS = "acks"
    SURPLUS = "surplus"
    HEAL = "heal"
    MISSING = "missing"


class Theft(Struct, frozen=True, gc=False):
    """The secrets that a thief of this device could read now, by number."""

    messages: int
    """Messages that are stored here as plain text, for their reader."""
    late_keys: int
    """Keys of messages that were sent and have not arrived here."""
    member_secrets: int
    """Secrets from which the next keys of others are derived, kept until these have acknowledged."""
    shared_keys: int
    """Keys of messages, kept to be shown to newcomers."""
    follows: int
    """Devices whose next messages could be read, until we renew our keys or are removed."""


class SecurityIs(Struct, frozen=True, gc=False):
    """The devices that hold the keys of a room, and what the keys protect."""

    room: TopicId
    newcomers: Newcomers | None
    """What newcomers may read; None: the room is not encrypted, and every relay of it can read it."""
    is_member: bool = False
    """Whether this device holds keys."""
    devices: tuple[DeviceKeys, ...] = ()
    hindrances: tuple[Hindrance, ...] = ()
    renewal: float | None = None
    """Seconds until our own keys are renewed; None without keys."""
    unread: tuple[tuple[Reason, int], ...] = ()
    """The number of messages that cannot be read here, by reason."""
    theft: Theft | None = None
    """What a thief of this device could read; None: nothing of the room is secret."""


class RelayStatus(Struct, frozen=True, gc=False):
    """A relay of a room, as a member sees it."""

    relay: PeerId
    hints: tuple[str, ...]
    up: bool
    chosen: bool
    rtt: float | None
    load: float | None
    """The share of its capacity that is in use, as the relay reports."""
    failure: Reason | None
    signs: bool = False
    """Whether this member has signed statements of it: then it can be proved if it withholds."""
    anew: int = 0
    """How often it began anew since this node started, and so owes nothing of what it signed before."""
    fault: Reason | None = None
    """What is proved against it: ``withheld``, ``equivocation``. Or what is certain only here: ``stale``, it
    shows an older state than it signed. Or ``lost``, which is no lie."""
    fault_event: EventId | None = None
    """The event that it withholds."""
    fault_at: float | None = None
    """When this member learned of it."""


class RoomStatus(Struct, frozen=True, gc=False):
    """The state of one room at this node."""

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
    """Dependencies that events wait for."""
    soft_failed: int
    rejected: int
    unsent: int
    """Our events that no relay and no member has."""
    encrypted: bool = False
    """Whether only members can read messages; fixed for ever when the room is founded."""
    revoked: bool = False
    """Whether this device was revoked in the room, so that others take none of its events."""


class RoomLeft(Struct, frozen=True, gc=False):
    """We have left the room; counts the peers that are told so."""

    room: TopicId
    members: int
    """The number of other people in the room."""
    neighbors: int
    """The number of online members that the leave was sent to."""
    relays: tuple[PeerId, ...]
    """The relays that the leave was sent to."""
    until: float | None
    """Unix time until which this node tries to tell another peer; None: it does not try."""
    reason: Reason | None = None
    """Why no peer is told."""


class RelaysCompared(Struct, frozen=True, gc=False):
    """How far a relay holds what another relay of the room, and this device, hold."""

    room: TopicId
    wanted: int
    """The events that the new relay should hold."""
    held: int
    """Those that it holds; it has signed that of all but operations on keys."""
    lacks: int
    """Those that would be left behind."""
    lacking: tuple[EventId, ...]
    """The first of them, a hundred at most."""
    reasons: dict[str, int]
    """Why the new relay refuses some of the wanted events, with their number."""
    compared: bool
    """Whether the old relay was read to its end. If not, what only it holds is not known here."""
    read: bool
    """Whether the new relay was read to its end."""
    old_up: bool
    new_up: bool
    old_signs: bool
    new_signs: bool
    """Whether they sign what they show; version 0.1.0 does not."""


class Departure(Struct, frozen=True, gc=False):
    """A room that was left while no other peer is known to have received the leave."""

    room: TopicId
    name: str | None
    members: int
    """The number of other people in the room."""
    since: float
    until: float
    """The time at which the attempt to tell another peer is given up."""


class RoomsAre(Struct, frozen=True, gc=False):
    """Every room of this node."""

    rooms: tuple[RoomStatus, ...]
    departures: tuple[Departure, ...] = ()


class RelayKnowledge(Struct, frozen=True, gc=False):
    """All that a relay knows of one person in one room."""

    person: AuthorId
    membership: Membership
    control_events: int
    kept_events: int
    kept_bytes: int
    devices: int
    last_event_ms: int | None
    last_seen: float | None
    """The time of the last request of one of their devices."""
    receipts: int
    key_devices: int = 0
    """Their devices that take part in the room's keys; the relay stores how far each has read."""


class RelayRoomReport(Struct, frozen=True, gc=False):
    """All that a relay knows of one room."""

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
    """The kept events that are operations on keys, which wait for devices that lack them."""
    group_bytes: int = 0


class RelayReport(Struct, frozen=True, gc=False):
    """All that this relay knows."""

    epoch: Hex
    rooms: tuple[RelayRoomReport, ...]


class RelayReplies(Struct, frozen=True, gc=False):
    """The relay's answers to a request."""

    messages: tuple[FromRelay | Given | ControlPage | RelayInfo, ...]


class ChunkFetched(Struct, frozen=True, gc=False):
    """A piece of an attachment, whose digest was checked."""

    data: bytes


MAX_MESSAGES = 256
"""The most messages that one command may send."""
ROOM_NAME_CHARS = 200
DIGEST_BYTES = 32

Words = Annotated[str, Meta(max_length=500)]
KindText = Annotated[str, Meta(min_length=1, max_length=KIND_CHARS)]
Patience = Annotated[float, Meta(gt=0, le=600, description="seconds")]
Digest = Annotated[Hex, Meta(min_length=DIGEST_BYTES, max_length=DIGEST_BYTES)]


class RoomCommand(Command[R_co], Generic[R_co], frozen=True, gc=False):
    """Base of the commands for one room."""

    room: TopicId


class CreateRoom(Command[RoomMade], frozen=True, gc=False):
    """Found a room; answered when it is durable here."""

    name: Annotated[str, Meta(min_length=1, max_length=ROOM_NAME_CHARS)] | None = None
    topic: Annotated[str, Meta(max_length=1000)] | None = None
    rule: JoinRule = JoinRule.INVITE
    """Who may join: those invited, those who knock and are invited then, or everyone."""
    creators: Annotated[tuple[AuthorId, ...], Meta(max_length=16)] = ()
    """People of infinite power beside ourselves, such as a second identity of the owner."""
    newcomers: Newcomers | None = Newcomers.FROM_NOW
    """What people who join later may read. None: the room is not encrypted, and every relay can read it;
    a room that everyone may join cannot be encrypted."""


class JoinRoom(RoomCommand[RoomMade], frozen=True, gc=False):
    """Join by a ticket, by an invitation that is in the room's state, or because the room is public."""

    ticket: Ticket | None
    contacts: tuple[Contact, ...]
    """Members and relays to ask, all at once; the first that answers is taken."""
    patience: float = 20.0
    knock: bool = False
    """Knock instead of joining."""
    called: str | None = None
    """The room's name by the invitation: shown here until the room's own name has come."""


class MakeTicket(RoomCommand[TicketMade], frozen=True, gc=False):
    """Make an invitation to hand over."""

    expires_ms: int
    person: AuthorId | None = None
    """The person who may use it; None: anyone who holds it."""


class SetMembership(RoomCommand[Sent], frozen=True, gc=False):
    """Invite, kick (leave), ban, unban (leave); ourselves: leave."""

    person: AuthorId
    membership: Membership
    """`leave` kicks a member, lifts a ban, or, for ourselves, leaves the room."""
    reason: Words | None = None


class SetPower(RoomCommand[Sent], frozen=True, gc=False):
    """Replace all power levels."""

    power: Power


class SetLevel(RoomCommand[Sent], frozen=True, gc=False):
    """Change one power level: that of a person, or the one that a kind of event or an act requires."""

    level: Annotated[int, Meta(ge=-LEVEL_MOST, le=LEVEL_MOST)] | None = None
    """The new level; None removes the entry."""
    person: AuthorId | None = None
    kind: KindText | None = None
    """A kind of event, or `ban`, `kick`, `invite`, `redact`."""


class SetRule(RoomCommand[Sent], frozen=True, gc=False):
    """Decide who may join."""

    rule: JoinRule


class SetState(RoomCommand[Sent], frozen=True, gc=False):
    """Set plain state, such as the name."""

    kind: KindText
    key: Annotated[str, Meta(max_length=KEY_CHARS)] = ""
    body: bytes | None = None
    text: str | None = None
    """The body as text, instead of `body`."""


class SetRetention(RoomCommand[Sent], frozen=True, gc=False):
    """Decide how long relays keep an event."""

    seconds: Annotated[float, Meta(gt=0, le=2**40)] | None = None
    """None: until the relay needs the space."""


class AddRelay(RoomCommand[Sent], frozen=True, gc=False):
    """Ask a relay to serve the room, and name it there."""

    contact: Contact
    patience: Patience = 20.0
    stamp: Stamp | None = None
    """The work that an open relay asks. Without it the relay may decline with ``unpaid``; `ExaminePrice` then
    tells the price."""


class RelayPrice(Struct, frozen=True, gc=False):
    """The stamp that an open relay asks for a room, as it told this node last."""

    price: StampPrice
    device: PeerId
    """The device for which the stamp counts: this one."""
    most: int
    """The bits of the most expensive stamp that this node is configured to make."""


class ExaminePrice(RoomCommand[RelayPrice], frozen=True, gc=False):
    """Tell the stamp that a relay asked when it declined to serve the room."""

    relay: PeerId


class DropRelay(RoomCommand[Sent], frozen=True, gc=False):
    """Take a relay out of the room's state, and its membership with it."""

    relay: PeerId


class CompareRelays(RoomCommand[RelaysCompared], frozen=True, gc=False):
    """Compare two relays of the room, and give the new one what it lacks.

    The first question begins the comparison, further ones tell how far it is; a minute after the last one it
    ends. Nothing is removed: `DropRelay` does that once nothing is lacking.
    """

    old: PeerId
    new: PeerId


class SendToRoom(RoomCommand[Sent], frozen=True, gc=False):
    """Send messages; answered when they are durable here, with the peers that they were sent to."""

    bodies: Annotated[tuple[bytes, ...], Meta(max_length=MAX_MESSAGES)] = ()
    kind: KindText = MESSAGE
    deadline: Annotated[float, Meta(gt=0, le=2**31)] | None = None
    """Seconds after which subscribers here are told (`Overdue`) at which members they have not arrived."""
    texts: Annotated[tuple[str, ...], Meta(max_length=MAX_MESSAGES)] = ()
    """Bodies that are text, after `bodies`."""


class Redact(RoomCommand[Sent], frozen=True, gc=False):
    """Redact an event."""

    event: EventId
    reason: Words | None = None


class ShareHistory(RoomCommand[Sent], frozen=True, gc=False):
    """Show newcomers of an encrypted room the earlier messages, if it was founded to share them."""

    newest: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    """The number of newest messages to show; None: all that this device could read."""


class RevokeInRoom(RoomCommand[Sent], frozen=True, gc=False):
    """Revoke one of our devices in the room."""

    revocation: Revocation


class ReadRoom(Command[Reading], frozen=True, gc=False):
    """Subscribe to the events of a room."""

    subscription: int
    room: TopicId
    since: Annotated[float, Meta(ge=0, le=2**40)] | None = None
    """Unix time from which on stored events are delivered too, 0 for all; None: only new events."""
    name: Annotated[str, Meta(min_length=1, max_length=STREAM_NAME_CHARS)] | None = None
    """Makes the subscription durable: it resumes after the last event that was consumed."""
    live: bool = True
    """Whether to go on with new events after history."""
    state: bool = True
    """Whether membership and other state is delivered too, or only messages."""


class ExamineRooms(Command[RoomsAre], frozen=True, gc=False):
    """Report the status of every room of this node."""


class ExamineState(RoomCommand[StateIs], frozen=True, gc=False):
    """Report the resolved state of a room."""


class ExamineSecurity(RoomCommand[SecurityIs], frozen=True, gc=False):
    """Report the devices that hold a room's keys, and what a thief of this device could read."""


class NotePerson(Command[Done], frozen=True, gc=False):
    """Store the node's note on a person (`noted_people`)."""

    person: AuthorId
    note: bytes


class ExamineLedger(RoomCommand[LedgerIs], frozen=True, gc=False):
    """Report at which members our events have arrived."""

    event: EventId | None = None
    """None: the newest `limit` of our own."""
    limit: Annotated[int, Meta(ge=1, le=1000)] = 20
    """The number of newest events to report."""


class ExamineRelay(Command[RelayReport], frozen=True, gc=False):
    """Report all that this node knows as a relay, of each room and person."""


class LeaveRoom(RoomCommand[RoomLeft], frozen=True, gc=False):
    """Leave a room and stop following it; its stored events stay. Others are told when they are in reach."""


class KeepChunk(RoomCommand[Done], frozen=True, gc=False):
    """Store a piece of an attachment and offer it to the relays."""

    digest: Digest
    """SHA-256 of the piece."""
    data: Annotated[bytes, Meta(max_length=CHUNK_BYTES)]


class FetchChunk(RoomCommand[ChunkFetched], frozen=True, gc=False):
    """Fetch a piece of an attachment, from here, members or relays."""

    digest: Digest
    """SHA-256 of the piece."""
    patience: Patience = 20.0


class AskRelay(Command[RelayReplies], frozen=True, gc=False):
    """Answer a request of an authenticated device that came over HTTP instead of a link."""

    peer: PeerId
    person: AuthorId
    message: RelaySend | RelayForward | Resync | Want | AskControl | RelayInfo
