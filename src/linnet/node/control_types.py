"""What the control API is asked and what it answers: JSON, ids in their text form.

These types are the API: `linnet.node.openapi` describes them, the server speaks them, and
`linnet.node.client` reads them. Bytes are base64; an event whose body is UTF-8 has it as ``text``
as well.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct

from linnet.core.limits import BATCH_EVENTS, NEIGHBORS, PUBLISHERS, STREAM_NAME_CHARS
from linnet.node.known_people import Alarm
from linnet.overlay.config import Overlay
from linnet.rooms.content import Membership

StreamName = Annotated[str, Meta(min_length=1, max_length=STREAM_NAME_CHARS)]
DeviceText = Annotated[str, Meta(min_length=1, max_length=128, description="a device id, `ld1…`")]
PersonText = Annotated[str, Meta(min_length=1, max_length=128, description="a person id, `lp1…`")]
ContactText = Annotated[str, Meta(min_length=1, max_length=1024, description="`KEY@HOST:PORT`")]
Seconds = Annotated[float, Meta(ge=0, le=3600)]
Moment = Annotated[float, Meta(ge=0, le=2**40, description="Unix time in seconds")]


class PublishRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What to say: bodies in base64, or texts, or both, bodies first."""

    stream: StreamName
    bodies: Annotated[tuple[bytes, ...], Meta(max_length=BATCH_EVENTS)] = ()
    texts: Annotated[tuple[str, ...], Meta(max_length=BATCH_EVENTS)] = ()
    confirm: Seconds = 0.0
    """Seconds to wait for storage nodes to say that they keep it."""


class SubscribeQuery(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What to be handed."""

    stream: StreamName
    since: Moment | None = None
    """Unix time from which on history is wanted, 0 for all of it. Absent: only what comes."""
    name: Annotated[str, Meta(min_length=1, max_length=STREAM_NAME_CHARS)] | None = None
    """Makes the subscription durable: it resumes after the last that was consumed."""
    ordered: bool = True
    """Whether each publisher's events come in order, waiting for gaps to be filled."""
    live: bool = True
    """Whether to go on after history."""
    receipts: bool = False
    """Whether publishers may learn that it arrived here."""
    ack: Literal["auto", "manual"] = "auto"
    """`auto`: what was written to the caller is consumed. `manual`: what the caller says."""


class HistoryQuery(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which history to be handed."""

    stream: StreamName
    since: Moment = 0.0
    """Unix time from which on, 0 for all that is kept."""
    ordered: bool = True
    """Whether each publisher's events come in order."""


class ConsumedRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """So many more items of a subscription were handled."""

    items: Annotated[int, Meta(ge=1, le=2**31)]


class DeclareRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the owner of a stream decides about it."""

    stream: StreamName
    publishers: Annotated[tuple[PersonText, ...], Meta(max_length=PUBLISHERS)] | None = None
    """Who may publish beside the owner. Absent: everyone."""
    degree: Annotated[int, Meta(ge=2, le=NEIGHBORS)] | None = None
    near: bool = False
    trackers: Annotated[tuple[ContactText, ...], Meta(max_length=8)] = ()
    sealed: bool = False
    """Whether only readers whom this device lets in can read it. For good; nobody else can publish then."""


class BlockRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Have nothing to do with a device any more, or again."""

    device: DeviceText
    blocked: bool = True


class ConnectRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Keep a link to a peer."""

    contact: ContactText


class FateView(Struct, frozen=True):
    """What is known of an event at one receiver."""

    receiver: str
    storage: bool
    delivered_at: float | None


class PublishReply(Struct, frozen=True):
    """It is durable here and was passed on."""

    stream: str
    topic: str
    first: int
    ids: tuple[str, ...]
    neighbors: int
    fates: tuple[FateView, ...]
    unsent: str | None = None
    """Why there is no neighbour, if that is known: ``no_address`` or ``unreachable_inbound``."""
    unconfirmed: str | None = None
    """Why it was not confirmed, if it was to be: ``no_storage`` or ``timeout``."""


class EventView(Struct, frozen=True, tag="event", omit_defaults=True):
    """An event whose signature was checked."""

    id: str
    topic: str
    author: str
    device: str
    """The short name of the author's device, hexadecimal."""
    kind: str
    time: int
    """The author's clock, milliseconds; advisory."""
    body: bytes
    seq: int | None = None
    prev: str | None = None
    text: str | None = None
    """The body, if it is UTF-8."""
    key: str | None = None
    """Rooms: present if it sets state."""
    height: int | None = None
    """Rooms: how many events lie before it on the longest way."""
    label: str | None = None
    """Rooms: what the author's device calls itself."""
    content: dict[str, Any] | None = None
    """Rooms: what it says, if nodes understand its kind."""
    unreadable: str | None = None
    """Encrypted rooms, sealed streams: why it cannot be read here. Once it can be, it comes again, whole.
    Rooms: `redacted`, if it was taken back."""
    redacted_by: str | None = None
    """Rooms: who took it back."""


class MissedView(Struct, frozen=True, tag="missed"):
    """A range of a chain that could not be had."""

    topic: str
    author: str
    device: str
    first: int
    last: int
    reason: str


class CaughtUpView(Struct, frozen=True, tag="caught_up"):
    """History was handed over; what follows is live."""

    begins_at: float | None
    evicted: bool
    reason: str | None


class EndedView(Struct, frozen=True, tag="ended"):
    """Nothing more comes."""

    reason: str | None


class SubscribedView(Struct, frozen=True, tag="subscribed"):
    """The first line: the subscription is on, and what it is called."""

    subscription: int
    resumed: bool


class HeartbeatView(Struct, frozen=True, tag="heartbeat"):
    """Nothing came for a while; the subscription lives."""


class InsertedView(Struct, frozen=True, tag="inserted"):
    """Rooms: the event that comes next came later than what belongs behind it."""

    event: str
    before: str
    """Which belongs behind it, and came before."""


class OverdueView(Struct, frozen=True, tag="overdue"):
    """A deadline has passed: at whom an event of ours is not known to have arrived."""

    event: str
    people: tuple[str, ...]


class WarningView(Struct, frozen=True, tag="warning", omit_defaults=True):
    """Rooms: somebody in it may not be who they seem to be. Told once; it is not an item to be consumed."""

    alarm: Alarm
    person: str
    """Whom it is about."""
    label: str
    """What they call themselves."""
    other: str | None = None
    """Who was known by this name before."""
    device: str | None = None
    """The device that is new."""


ItemView: TypeAlias = (
    EventView
    | MissedView
    | CaughtUpView
    | OverdueView
    | InsertedView
    | EndedView
    | SubscribedView
    | HeartbeatView
    | WarningView
)


class ChainView(Struct, frozen=True):
    """How far one chain is known here."""

    author: str
    device: str
    last: int
    missing: int


class StreamView(Struct, frozen=True):
    """One stream at this node."""

    stream: str
    topic: str
    tracker: str | None
    neighbors: tuple[str, ...]
    storage_nodes: tuple[str, ...]
    stores: bool
    subscriptions: int
    received: int
    duplicates: int
    rejected: int
    gaps_open: int
    gaps_filled: int
    gaps_lost: int
    kept_events: int
    kept_bytes: int
    chains: tuple[ChainView, ...]
    overlay: Overlay = Overlay.TRACKER
    """Who says who the neighbours are."""
    alone: str | None = None
    """Why it has no neighbours, if that is known: ``no_address`` or ``unreachable_inbound``."""


class RelayView(Struct, frozen=True):
    """A relay of a room, as this member sees it."""

    relay: str
    hints: tuple[str, ...]
    up: bool
    chosen: bool
    rtt: float | None
    load: float | None
    """Share of its capacity that is used, as it says."""
    failure: str | None


class RoomView(Struct, frozen=True):
    """How one room stands at this node."""

    room: str
    name: str | None
    membership: Membership
    relay: bool
    """Whether this node serves it as a relay."""
    members: int
    online: tuple[str, ...]
    relays: tuple[RelayView, ...]
    events: int
    control_events: int
    heads: int
    waiting: int
    missing: int
    soft_failed: int
    rejected: int
    unsent: int
    """Events of ours that no relay and no member has."""
    encrypted: bool = False
    """Whether only members can read what is said."""


class EdgeView(Struct, frozen=True):
    """A node of a graph and its neighbours."""

    device: str
    neighbors: tuple[str, ...]


class RttView(Struct, frozen=True):
    """How long a message and its answer take on a link, in seconds, as one end measured it."""

    reporter: str
    neighbor: str
    rtt: float


class GraphReply(Struct, frozen=True):
    """The graph of a topic, as its tracker here holds it."""

    topic: str
    degree: int
    near: bool
    nodes: tuple[EdgeView, ...]
    rtts: tuple[RttView, ...]


class Check(Struct, frozen=True):
    """One thing that `linnet doctor` looks at."""

    name: str
    ok: bool
    detail: str
    """What was found."""
    advice: str = ""
    """What to do about it, if it is wrong."""


class DoctorReply(Struct, frozen=True):
    """What the running node knows about its own health."""

    checks: tuple[Check, ...]


class DoneReply(Struct, frozen=True):
    """It was done."""

    done: bool = True


class ErrorView(Struct, frozen=True):
    """Why it was not done."""

    reason: str
    detail: str
    hint: str = ""
    elsewhere: str = ""
    """The address of another place, where a host named one."""


class ErrorReply(Struct, frozen=True):
    """It was not done."""

    error: ErrorView
