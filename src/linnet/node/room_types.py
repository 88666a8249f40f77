"""What the control API is asked about rooms and what it answers: JSON, ids in their text form."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from linnet.core.limits import KEY_CHARS, KIND_CHARS, STREAM_NAME_CHARS
from linnet.event.event import MESSAGE
from linnet.node.control_types import ContactText, DeviceText, Moment, PersonText, RoomView
from linnet.rooms.content import LEVEL_MOST, JoinRule, Membership, Newcomers
from linnet.rooms.messages import CHUNK_BYTES
from linnet.rooms.results import Fate

MAX_MESSAGES = 256
"""Messages that one request may say."""

ROOM_NAME_CHARS = 200
WEEK = 7 * 86_400.0

RoomText = Annotated[str, Meta(min_length=1, max_length=128, description="a room id, `lt1…`")]
EventText = Annotated[str, Meta(min_length=1, max_length=128, description="an event id, `le1…`")]
Words = Annotated[str, Meta(max_length=500)]
KindText = Annotated[str, Meta(min_length=1, max_length=KIND_CHARS)]
RoomName = Annotated[str, Meta(min_length=1, max_length=ROOM_NAME_CHARS)]
Patience = Annotated[float, Meta(gt=0, le=600, description="seconds")]
Level = Annotated[int, Meta(ge=-LEVEL_MOST, le=LEVEL_MOST)]
Content = dict[str, Any]
"""What an event of a kind that nodes understand says."""


class CreateRoomRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A room to be founded."""

    name: RoomName | None = None
    topic: Annotated[str, Meta(max_length=1000)] | None = None
    rule: JoinRule = JoinRule.INVITE
    """Who may join: those invited, those who knock and are invited then, or everyone."""
    creators: Annotated[tuple[PersonText, ...], Meta(max_length=16)] = ()
    """People of infinite power beside us."""
    newcomers: Newcomers = Newcomers.FROM_NOW
    """What those may read who join later; a room that everyone may join is not encrypted, and shows all."""


class JoinRoomRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A room to join: by the text of an invitation, or by its id with somebody to ask."""

    invitation: Annotated[str, Meta(max_length=32_768)] | None = None
    room: RoomText | None = None
    contacts: Annotated[tuple[ContactText, ...], Meta(max_length=16)] = ()
    """Members and relays to ask, `KEY@HOST:PORT` each, beside those that an invitation names."""
    patience: Patience = 20.0
    knock: bool = False
    """Knock instead of joining."""


class InviteRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An invitation to be made."""

    lifetime: Annotated[float, Meta(gt=0, le=3650 * 86_400)] = WEEK
    """Seconds until it ends."""
    person: PersonText | None = None
    """The one who may use it. Absent: whoever holds it."""
    announce: bool = False
    """Whether the person is also invited in the room's state, as who has knocked waits for."""


class MembershipRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How a person is to stand to the room."""

    person: PersonText
    membership: Membership
    """`leave` kicks a member, takes a ban back, and is for ourselves to go."""
    reason: Words | None = None


class LevelRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One level to be changed: of a person, or what a kind of event or an act asks for."""

    level: Level | None = None
    """Absent takes the entry out."""
    person: PersonText | None = None
    kind: KindText | None = None
    """A kind of event, or `ban`, `kick`, `invite`, `redact`."""


class RuleRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Who may join."""

    rule: JoinRule


class StateRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Plain state to be set, such as the room's name."""

    kind: KindText
    key: Annotated[str, Meta(max_length=KEY_CHARS)] = ""
    text: str | None = None
    body: bytes | None = None
    """Instead of a text."""


class RetentionRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How long the room's relays keep an event."""

    seconds: Annotated[float, Meta(gt=0, le=2**40)] | None = None
    """Absent: until capacity asks for it."""


class SendRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What to say: bodies in base64, or texts, or both, bodies first."""

    bodies: Annotated[tuple[bytes, ...], Meta(max_length=MAX_MESSAGES)] = ()
    texts: Annotated[tuple[str, ...], Meta(max_length=MAX_MESSAGES)] = ()
    kind: KindText = MESSAGE
    deadline: Annotated[float, Meta(gt=0, le=2**31)] | None = None
    """Seconds after which readers here are told at whom it has not arrived."""


class RedactRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An event to be taken back."""

    event: EventText
    reason: Words | None = None


class ShareRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What was said before, to be shown to those who joined."""

    newest: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    """So many of the newest messages; absent: all that can be read here."""


class AddRelayRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A relay to be asked to serve the room, and to be named in it."""

    contact: ContactText
    patience: Patience = 20.0


class DropRelayRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A relay to be taken out of the room."""

    relay: DeviceText


class KeepChunkRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A piece of an attachment."""

    data: Annotated[bytes, Meta(max_length=CHUNK_BYTES)]


class ChunkQuery(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How long to look for a piece."""

    patience: Patience = 20.0
    """Seconds until it is given up."""


class ReadQuery(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What to be handed of a room."""

    since: Moment | None = None
    """Unix time from which on history is wanted, 0 for all of it. Absent: only what comes."""
    name: Annotated[str, Meta(min_length=1, max_length=STREAM_NAME_CHARS)] | None = None
    """Makes the subscription durable: it resumes after the last that was consumed."""
    live: bool = True
    """Whether to go on after history."""
    state: bool = True
    """Whether membership and other state is handed over too."""
    ack: Literal["auto", "manual"] = "auto"
    """`auto`: what was written to the caller is consumed. `manual`: what the caller says."""


class LedgerQuery(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which events of ours to look up."""

    event: EventText | None = None
    """One of them. Absent: the newest."""
    limit: Annotated[int, Meta(ge=1, le=1000)] = 20
    """How many of the newest."""


class RoomReply(Struct, frozen=True):
    """The room is there, and we are in it, or have knocked."""

    room: str
    event: str
    """Our join."""
    refreshed: int | None = None
    """This node was in the room already: so many addresses of others were taken in and are tried."""


class InvitationReply(Struct, frozen=True):
    """An invitation, to be handed over."""

    text: str
    room: str
    name: str | None
    person: str | None
    expires_at: float
    contacts: tuple[str, ...]


class SentReply(Struct, frozen=True):
    """They are in the room and durable here."""

    room: str
    ids: tuple[str, ...]
    neighbors: int
    """Online members that they were sent to."""
    relays: tuple[str, ...]
    """Relays that they were sent to; whether they took them stands in the ledger."""


class RoomsReply(Struct, frozen=True):
    """Every room of this node."""

    rooms: tuple[RoomView, ...]


class StateEntryView(Struct, frozen=True, omit_defaults=True):
    """One value of a room's state."""

    kind: str
    key: str
    event: str
    author: str
    time: int
    body: bytes
    text: str | None = None
    """The body, if it is UTF-8 that only applications read."""
    content: Content | None = None
    """What it says, if nodes understand its kind."""


class MemberView(Struct, frozen=True):
    """A person in a room."""

    person: str
    label: str
    """What a device of theirs calls itself; anyone may call themselves anything."""
    membership: Membership
    level: int | None
    """None: infinite, a creator's."""
    online: bool
    devices: tuple[str, ...]
    """Those that are online."""
    relay: bool
    key_devices: tuple[str, ...] = ()
    """Those that hold the room's keys, where it is encrypted."""
    verified: bool = False
    """Whether the user of this node has compared safety numbers with them."""


class StateReply(Struct, frozen=True):
    """The resolved state of a room."""

    room: str
    entries: tuple[StateEntryView, ...]
    members: tuple[MemberView, ...]
    power: Content
    rule: JoinRule
    heads: tuple[str, ...]
    control: tuple[str, ...]
    digest: str
    """Equal where rooms agree."""


class MembersReply(Struct, frozen=True):
    """Everyone who has to do with a room."""

    room: str
    members: tuple[MemberView, ...]


class MemberFateView(Struct, frozen=True):
    """What is known of an event at one member."""

    person: str
    label: str
    fate: Fate
    at: float | None
    relays: tuple[str, ...]
    reason: str | None


class EventFatesView(Struct, frozen=True):
    """What is known of one of our events."""

    event: str
    kind: str
    time: int
    members: tuple[MemberFateView, ...]


class LedgerReply(Struct, frozen=True):
    """The delivery ledger."""

    room: str
    events: tuple[EventFatesView, ...]


class ChunkReply(Struct, frozen=True):
    """A piece is kept here, and was offered to the relays."""

    digest: str


class ChunkDataReply(Struct, frozen=True):
    """A piece, whose digest was checked."""

    data: bytes


class RelayKnowledgeView(Struct, frozen=True):
    """What a relay knows of one person in one room."""

    person: str
    membership: Membership
    control_events: int
    kept_events: int
    kept_bytes: int
    devices: int
    last_event_ms: int | None
    last_seen: float | None
    receipts: int
    key_devices: int = 0


class RelayRoomView(Struct, frozen=True):
    """What a relay knows of one room."""

    room: str
    control_events: int
    kept_events: int
    kept_bytes: int
    chunk_bytes: int
    oldest: float | None
    expired: int
    evicted: int
    plain_state_events: int
    people: tuple[RelayKnowledgeView, ...]
    group_events: int = 0
    group_bytes: int = 0


class RelayReportReply(Struct, frozen=True):
    """What this relay knows."""

    epoch: str
    rooms: tuple[RelayRoomView, ...]
