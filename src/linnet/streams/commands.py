"""What the local application asks of streams, what it is answered, and what it is handed."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from linnet.core.ids import AuthorId, Contact, DeviceId, EventId, PeerId, TopicId, WireDeviceId
from linnet.core.limits import NEIGHBORS, PUBLISHERS
from linnet.core.reasons import Reason
from linnet.delivery.commands import Consumed, Declined, Done, Unsubscribe
from linnet.identity.cards import Revocation
from linnet.overlay.config import Overlay


class Publish(Struct, frozen=True, gc=False):
    """Say these, in this order. Answered by `Published` or `Declined`."""

    stream: str
    bodies: tuple[bytes, ...]
    confirm: float = 0.0
    """Seconds to wait for storage nodes to say that they keep them."""


class Subscribe(Struct, frozen=True, gc=False):
    """Hand me what is said in a stream. Answered by `Subscribed` or `Declined`."""

    subscription: int
    """Number that `Deliver` will carry; chosen by the caller."""
    stream: str
    since: float | None = None
    """Unix time from which on history is wanted, 0 for all of it; None for only what comes."""
    name: str | None = None
    """Makes it durable: it is kept in the log and resumes after the last that was consumed."""
    ordered: bool = True
    """Whether each publisher's events come in order, waiting for gaps to be filled."""
    live: bool = True
    """Whether to go on after history; otherwise it ends with `Ended`."""
    receipts: bool = False
    """Whether publishers may learn that it arrived here."""


class Policy(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """What the owner of a stream decides about it: the body of an event of kind ``policy``."""

    publishers: Annotated[tuple[AuthorId, ...], Meta(max_length=PUBLISHERS)] | None = None
    """Who may publish beside the owner; None: everyone."""
    degree: Annotated[int, Meta(ge=2, le=NEIGHBORS)] | None = None
    near: bool = False
    trackers: Annotated[tuple[Contact, ...], Meta(max_length=8)] = ()
    """Trackers of this stream in order of preference, instead of those that hashing gives."""
    sealer: WireDeviceId | None = None
    """The owner's device that seals the stream, so that only readers whom it let in can read it."""


class Declare(Struct, frozen=True, gc=False):
    """Publish a policy for a stream of ours. Answered by `Published` or `Declined`."""

    stream: str
    policy: Policy
    sealed: bool = False
    """Whether this device seals the stream from now on: nobody else may publish in it then."""


class Revoke(Struct, frozen=True, gc=False):
    """Spread a person's word that a device is theirs no longer. Answered by `Done` or `Declined`."""

    revocation: Revocation


class SwitchOverlay(Struct, frozen=True, gc=False):
    """Give a stream another overlay while it goes on. Answered by `OverlayIs` or `Declined`."""

    stream: str
    overlay: Overlay | None
    """None: what the configuration says."""


class AskToRead(Struct, frozen=True, gc=False):
    """Make a request to read a sealed stream. Answered by `RequestIs` or `Declined`."""

    stream: str


class AllowReader(Struct, frozen=True, gc=False):
    """Let a device read a stream that this device seals. Answered by `ReadersAre` or `Declined`."""

    stream: str
    request: str
    """The line that the device made."""
    from_now: bool = False
    """Whether a new epoch begins with it; otherwise it reads the present one, from its beginning."""


class DisallowReader(Struct, frozen=True, gc=False):
    """Put out readers of a stream that this device seals. Answered by `ReadersAre` or `Declined`."""

    stream: str
    person: AuthorId | None = None
    """All devices of this person."""
    device: DeviceId | None = None
    """This device alone."""


class ListReaders(Struct, frozen=True, gc=False):
    """Who may read a stream that this device seals. Answered by `ReadersAre` or `Declined`."""

    stream: str


class OverlayIs(Struct, frozen=True, gc=False):
    """The overlay that a stream has at this node from now on; for a while it stays in the old one too."""

    topic: TopicId
    overlay: Overlay
    before: Overlay


class RequestIs(Struct, frozen=True, gc=False):
    """A request to read, as a line for the stream's owner."""

    topic: TopicId
    line: str


class ReaderIs(Struct, frozen=True, gc=False):
    """A device that may read a sealed stream."""

    person: AuthorId
    device: DeviceId
    key: PeerId
    label: str
    since: int
    """The epoch from which on it reads."""
    at: int
    """When it was let in, Unix time."""


class ReadersAre(Struct, frozen=True, gc=False):
    """Who may read a sealed stream, and who was just let in or put out."""

    topic: TopicId
    epoch: int
    since: float | None
    """When the present epoch began; None: none has yet."""
    readers: tuple[ReaderIs, ...]
    changed: tuple[ReaderIs, ...] = ()


class Fate(Struct, frozen=True, gc=False):
    """What the sender knows of its event at one receiver."""

    receiver: PeerId
    storage: bool
    delivered_at: float | None
    """When the sender learned it; None: pending."""


class Published(Struct, frozen=True, gc=False):
    """It is durable here and was passed on; what is known of it elsewhere stands in its fates."""

    topic: TopicId
    first: int
    ids: tuple[EventId, ...]
    neighbors: int
    """Neighbours that it was sent to; 0: it goes out when one appears."""
    fates: tuple[Fate, ...]
    unsent: Reason | None = None
    """Why there is no neighbour, if that is known. ``no_address``: no tracker is known;
    ``unreachable_inbound``: nobody can dial this node, and nobody whom it could dial was named so far."""
    unconfirmed: Reason | None = None
    """If all were to confirm it and did not: ``no_storage``, nobody could; ``timeout``, not in time."""


class Subscribed(Struct, frozen=True, gc=False):
    """The subscription is on."""

    topic: TopicId
    resumed: bool
    """Whether a durable subscription of this name was found."""


class ChainStatus(Struct, frozen=True, gc=False):
    """How far one chain is known here."""

    author: AuthorId
    device: DeviceId
    last: int
    missing: int


class StreamStatus(Struct, frozen=True, gc=False):
    """What there is to know about one stream at this node."""

    stream: str
    topic: TopicId
    tracker: PeerId | None
    neighbors: tuple[PeerId, ...]
    storage_nodes: tuple[PeerId, ...]
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
    chains: tuple[ChainStatus, ...]
    overlay: Overlay = Overlay.TRACKER
    alone: Reason | None = None
    """Why it has no neighbours, if that is known: as in `Published.unsent`."""


SealedCommand: TypeAlias = AskToRead | AllowReader | DisallowReader | ListReaders
StreamCommand: TypeAlias = (
    Publish | Subscribe | Unsubscribe | Consumed | Declare | Revoke | SwitchOverlay | SealedCommand
)
StreamResult: TypeAlias = Published | Subscribed | OverlayIs | RequestIs | ReadersAre | Done | Declined
