"""What the local application asks of streams, what it is answered, and what it is handed."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from linnet.core.ids import AuthorId, Contact, DeviceId, EventId, PeerId, TopicId
from linnet.core.limits import NEIGHBORS, PUBLISHERS
from linnet.delivery.commands import Consumed, Declined, Done, Unsubscribe
from linnet.identity.cards import Revocation


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


class Declare(Struct, frozen=True, gc=False):
    """Publish a policy for a stream of ours. Answered by `Published` or `Declined`."""

    stream: str
    policy: Policy


class Revoke(Struct, frozen=True, gc=False):
    """Spread a person's word that a device is theirs no longer. Answered by `Done` or `Declined`."""

    revocation: Revocation


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


StreamCommand: TypeAlias = Publish | Subscribe | Unsubscribe | Consumed | Declare | Revoke
StreamResult: TypeAlias = Published | Subscribed | Done | Declined
