"""What the control API is asked about places and what it answers."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from linnet.node.control_types import (
    ContactText,
    EndedView,
    HeartbeatView,
    PersonText,
    Seconds,
    SubscribedView,
)
from linnet.places.channel.packet import NAME_CHARS
from linnet.places.deed import COHOSTS, KEEPERS, Policy

INLINE_BYTES = 1024 * 1024
"""Bytes of a body that a line may carry."""

_KEYWORDS = "^[0-9A-Za-z_]*$"
Method = Annotated[
    str,
    Meta(min_length=1, max_length=NAME_CHARS, pattern="^[0-9A-Za-z_]+$", description="such as `_message`"),
]
ObjectName = Annotated[str, Meta(max_length=NAME_CHARS, pattern=_KEYWORDS)]
Number = Annotated[int, Meta(ge=1, le=2**53)]
Text = Annotated[str, Meta(max_length=8192)]
Values = Annotated[dict[Method, Annotated[str, Meta(max_length=1024 * 1024)]], Meta(max_length=1024)]


class HostRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Found a place."""

    policy: Policy = Policy.PUBLIC
    """Who comes in, and what of the past is open to them."""
    name: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    cohosts: Annotated[tuple[PersonText, ...], Meta(max_length=COHOSTS)] = ()
    """Who may speak while the host is away, in order of rank."""
    keepers: Annotated[tuple[ContactText, ...], Meta(max_length=KEEPERS)] = ()
    """Relays that keep what is said."""


class ChangeRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Change the deed of a place that this device founded; what is absent stays as it is."""

    policy: Policy | None = None
    cohosts: Annotated[tuple[PersonText, ...], Meta(max_length=COHOSTS)] | None = None
    keepers: Annotated[tuple[ContactText, ...], Meta(max_length=KEEPERS)] | None = None


class EnterRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Enter a place, or come back to it."""

    where: Annotated[str, Meta(min_length=1, max_length=16_384)]
    """An address `la1…`, a name such as `music.alice`, or the place's id `lt1…`."""
    contacts: Annotated[tuple[ContactText, ...], Meta(max_length=16)] = ()
    text: Text = ""
    """What the host is told at the door."""
    patience: Seconds = 20.0
    waits: bool = True
    """Whether to wait for a host who decides who comes in; otherwise it is told at once that it does."""


class AnnounceRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Say something to all guests: a text, or a body in base64."""

    method: Method = "_message"
    text: str | None = None
    body: bytes | None = None
    state: Values = {}
    """Objects of the place that get these values; an empty one goes."""
    variables: Values = {}
    """For this message only."""
    reset: bool = False
    """State begins anew with this message."""
    more: bool = False
    """The message stays open, and `announce/more` brings the rest."""
    added: Values = {}
    """What is added to lists (`_list…`, such as `|bea`) and numbers (`_amount…`, `_counter…`)."""
    taken: Values = {}
    """What is taken away from them."""


class MoreRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """More of the body of an open message, or with an empty body and `more` how far it is."""

    message: Number
    body: bytes = b""
    more: bool = True


class TalkRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Say something to the host alone."""

    method: Method = "_request"
    text: str | None = None
    body: bytes | None = None
    variables: Values = {}
    patience: Seconds = 20.0


class AdmitRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Let somebody in who waits at the door."""

    person: PersonText
    since: Annotated[int, Meta(ge=0, le=2**53)] | None = None
    """The first message that is open to them. Absent: as the policy says."""


class RejectRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Turn somebody away who waits at the door."""

    person: PersonText
    text: Text = ""
    elsewhere: Annotated[str, Meta(min_length=1, max_length=16_384)] | None = None
    """The address of another place."""


class EjectRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Put a guest out."""

    person: PersonText


class LeaveRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Be a guest no longer, or only not now."""

    for_good: bool = True


class ObjectsQuery(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which objects to look at."""

    prefix: ObjectName = ""
    """Those whose names begin with these keywords."""
    at: bool = False
    """The one that fits the whole name best, instead."""


class ListenQuery(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What to be handed of a place."""

    since: Number | None = None
    """The first message wanted. Absent: only what comes."""
    name: Annotated[str, Meta(min_length=1, max_length=256)] | None = None
    """Makes it durable: it resumes after the last that was consumed."""
    methods: Annotated[str, Meta(max_length=4096, pattern="^[0-9A-Za-z_,]*$")] | None = None
    """Names with commas between: several who listen share the place, and each message goes to the most
    specific name that covers its own. Absent: everything."""
    objects: ObjectName | None = None
    """Changes of objects whose names begin so, too; empty: of all."""
    largest: Annotated[int, Meta(ge=0, le=16 * INLINE_BYTES)] = INLINE_BYTES
    """Bytes of a body that a line carries; longer ones are fetched by their number."""
    ack: Literal["auto", "manual"] = "auto"
    """`auto`: what was written to the caller is consumed. `manual`: what the caller says."""


class PastQuery(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which messages of the past to be handed, both ends included."""

    first: Number | None = None
    """The first message. Absent: the first that is open to this node."""
    last: Number | None = None
    """Absent: the newest."""
    largest: Annotated[int, Meta(ge=0, le=16 * INLINE_BYTES)] = INLINE_BYTES
    """Bytes of a body that a line carries; longer ones are fetched by their number."""


class BodyQuery(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where to begin."""

    offset: Annotated[int, Meta(ge=0, le=2**53)] = 0
    """The first byte; whoever was interrupted goes on from here."""


class DeedView(Struct, frozen=True):
    """Whose a place is, and by which rules."""

    version: int
    policy: Policy
    host: str
    cohosts: tuple[str, ...]
    keepers: tuple[str, ...]


class PlaceView(Struct, frozen=True):
    """A place of this node, as it stands."""

    place: str
    name: str | None
    role: str
    """`host`, `cohost`, `guest`, `keeper`, or `outside`."""
    deed: DeedView
    voice: str | None
    """The device that speaks now."""
    term: int
    message: int
    """The newest."""
    fragment: int
    missing: int
    """Fragments that are known to be missing."""
    generation: int
    guests: int
    upstreams: tuple[str, ...]
    downstreams: tuple[str, ...]
    objects: int
    state: int
    """The last message whose change of state was applied."""
    state_hash: str


class PlacesReply(Struct, frozen=True):
    """Every place of this node."""

    places: tuple[PlaceView, ...]


class PlaceReply(Struct, frozen=True):
    """A place, and what others enter it by."""

    place: PlaceView
    address: str


class AnnouncedReply(Struct, frozen=True):
    """It is durable here, and on its way."""

    place: str
    message: int
    fragment: int
    size: int
    """Bytes of the body so far."""


class TalkedReply(Struct, frozen=True):
    """The host's device has it."""

    place: str
    request: int
    voice: str


class ObjectView(Struct, frozen=True, omit_defaults=True):
    """An object of a place."""

    name: str
    value: bytes
    text: str | None = None
    """The value, if it is UTF-8."""


class ObjectsReply(Struct, frozen=True):
    """Objects in the order of their names."""

    place: str
    state: int
    """The message whose state this is."""
    objects: tuple[ObjectView, ...]


class GuestView(Struct, frozen=True):
    """A guest."""

    person: str
    since: int
    """The first message that is open to it."""
    upto: int | None
    """It has everything below this fragment; absent: it gave no receipt yet."""


class GuestsReply(Struct, frozen=True):
    """Who is in, and who waits at the door."""

    place: str
    guests: tuple[GuestView, ...]
    waiting: tuple[str, ...]
    said: tuple[str, ...] = ()
    """What each of these said at the door."""


class ReceiptView(Struct, frozen=True):
    """What is known of a guest and a message."""

    person: str
    state: str
    """`delivered`, `pending`, or `closed`: the message is not open to it."""
    at_ms: int | None
    """When the receipt was given, by the guest's own clock."""


class PlaceReceiptsReply(Struct, frozen=True):
    """Which guests have a message."""

    place: str
    message: int
    receipts: tuple[ReceiptView, ...]


class VariableView(Struct, frozen=True, omit_defaults=True):
    """A variable of a message."""

    operator: str
    name: str
    value: bytes
    text: str | None = None
    """The value, if it is UTF-8."""


class MessageView(Struct, frozen=True, tag="message", omit_defaults=True):
    """A message, or a request of a guest, that has come whole."""

    message: int
    method: str
    author: str
    """The person whose device signed it."""
    size: int
    """Bytes of its body."""
    variables: tuple[VariableView, ...] = ()
    body: bytes | None = None
    """Absent: it is longer than was asked for."""
    text: str | None = None
    """The body, if it is UTF-8."""
    nym: str | None = None
    """Whose request it is, at the host; absent: it was said to all."""
    historic: bool = False


class PieceView(Struct, frozen=True, tag="piece"):
    """Bytes of a body."""

    offset: int
    data: bytes


class KnockedView(Struct, frozen=True, tag="knocked", omit_defaults=True):
    """Somebody waits at the door."""

    person: str
    method: str
    variables: tuple[VariableView, ...] = ()
    text: str = ""


class ChangedView(Struct, frozen=True, tag="changed", omit_defaults=True):
    """An object has another value now."""

    message: int
    name: str
    value: bytes | None = None
    """Absent: it is gone."""
    text: str | None = None


class LostView(Struct, frozen=True, tag="lost"):
    """Messages that cannot be had."""

    first: int
    last: int
    reason: str


class TakenBackView(Struct, frozen=True, tag="taken_back"):
    """Messages that were handed over do not count; whoever said them says them again, under new numbers."""

    messages: tuple[int, ...]


PlaceItemView: TypeAlias = (
    MessageView
    | PieceView
    | KnockedView
    | ChangedView
    | LostView
    | TakenBackView
    | EndedView
    | SubscribedView
    | HeartbeatView
)
