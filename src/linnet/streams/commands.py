"""The commands that the local application gives to streams, their answers, and what it is handed."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct, field

from linnet.core.ids import AuthorId, Contact, DeviceId, EventId, PeerId, TopicId, WireDeviceId
from linnet.core.limits import BATCH_EVENTS, NEIGHBORS, PUBLISHERS, STREAM_NAME_CHARS
from linnet.core.reasons import Reason
from linnet.delivery.receipts import ReceiverFate
from linnet.identity.cards import Revocation
from linnet.machine.commands import Command, Done
from linnet.overlay.config import Overlay

StreamName = Annotated[str, Meta(min_length=1, max_length=STREAM_NAME_CHARS)]
Moment = Annotated[float, Meta(ge=0, le=2**40)]
"""Unix time in seconds."""


class Publish(Command["Published"], frozen=True, gc=False):
    """Publish events, in this order; answered when they are durable here, or confirmed by storage nodes."""

    stream: StreamName
    bodies: Annotated[tuple[bytes, ...], Meta(max_length=BATCH_EVENTS)] = ()
    confirm: Annotated[float, Meta(ge=0, le=3600)] = 0.0
    """Seconds to wait for storage nodes to say that they keep them."""
    texts: Annotated[tuple[str, ...], Meta(max_length=BATCH_EVENTS)] = ()
    """Text bodies, after `bodies`; the node encodes them before it asks its machine."""


class Subscribe(Command["Subscribed"], frozen=True, gc=False):
    """Receive the events of a stream."""

    subscription: int
    """The number in `Deliver` effects; chosen by the caller."""
    stream: StreamName
    since: Moment | None = None
    """Unix time from which on history is wanted, 0 for all of it; None for new events only."""
    name: StreamName | None = None
    """Makes the subscription durable: it reads from the log and resumes after the last item that was
    consumed."""
    ordered: bool = True
    """Whether each publisher's events come in order, waiting for gaps to be filled."""
    live: bool = True
    """Whether to go on after history; otherwise it ends with `Ended`."""
    receipts: bool = False
    """Whether publishers may learn that their events arrived here."""


class Policy(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The settings of a stream by its owner: the body of an event of kind ``policy``."""

    publishers: Annotated[tuple[AuthorId, ...], Meta(max_length=PUBLISHERS)] | None = None
    """The people who may publish beside the owner; None: everyone."""
    degree: Annotated[int, Meta(ge=2, le=NEIGHBORS)] | None = None
    near: bool = False
    trackers: Annotated[tuple[Contact, ...], Meta(max_length=8)] = ()
    """Trackers of this stream in order of preference, instead of those chosen by hashing."""
    sealer: WireDeviceId | None = None
    """The owner's device that seals the stream, so that only readers that it has let in can read it."""
    storage: Annotated[tuple[Contact, ...], Meta(max_length=8)] = ()
    """The nodes that keep the stream by the owner's word; others that offer to are volunteers. Version 0.1.0
    cannot read a policy that names some."""


class Declare(Command["Published"], frozen=True, gc=False):
    """Set who may publish in a stream of ours and how it is linked."""

    stream: StreamName
    policy: Policy
    sealed: bool = False
    """Whether this device seals the stream from now on: nobody else may publish in it then."""


class Revoke(Command[Done], frozen=True, gc=False):
    """Spread a person's statement that a device is no longer theirs."""

    revocation: Revocation


class SwitchOverlay(Command["OverlayIs"], frozen=True, gc=False):
    """Switch a stream of this node to another overlay while it goes on; kept over restarts."""

    stream: StreamName
    overlay: Overlay | None = None
    """None: the overlay that the configuration names."""


class CheckStorage(Command["StorageChecked"], frozen=True, gc=False):
    """Ask the storage nodes of a stream to show what they have confirmed of this device's events."""

    stream: StreamName


class StorageOutcome(StrEnum):
    """The outcome of holding a storage node to what it has signed."""

    KEPT = "kept"
    """It showed the events."""
    GONE = "gone"
    """It says that it has them no more, and why: ``retention``, ``quota``, ``damaged``, or ``lost`` if its
    store began anew."""
    WRONG = "proved_wrong"
    """It signed what is not true; it counts no more."""
    SILENT = "no_answer"
    """It did not answer, or showed nothing that can be checked."""
    UNCHECKED = "not_checkable"
    """It has confirmed nothing, or only by receipts of an older version."""


class StorageCheck(Struct, frozen=True, gc=False):
    """What came of the latest check of a storage node."""

    node: PeerId
    outcome: StorageOutcome
    at: float
    """When, in Unix time."""
    number: int | None = None
    """The event that it is about; for ``kept`` the last one that was confirmed and shown."""
    reason: Reason | None = None


class StorageChecked(Struct, frozen=True, gc=False):
    """What came of a check, for each storage node that counts or is proved wrong."""

    topic: TopicId
    checks: tuple[StorageCheck, ...]


class AskToRead(Command["RequestIs"], frozen=True, gc=False):
    """Make a line of text by which this device asks the owner of a sealed stream for access."""

    stream: StreamName


class AllowReader(Command["ReadersAre"], frozen=True, gc=False):
    """Let a device read a stream that this device seals."""

    stream: StreamName
    request: Annotated[str, Meta(min_length=1, max_length=8192)]
    """The line that the device made."""
    from_now: bool = False
    """Whether a new epoch begins with this reader; otherwise it reads the present one, from its beginning."""


class DisallowReader(Command["ReadersAre"], frozen=True, gc=False):
    """Remove readers from a stream that this device seals; later events are sealed with a new key."""

    stream: StreamName
    person: AuthorId | None = None
    """All devices of this person."""
    device: DeviceId | None = None
    """This device alone."""


class ListReaders(Command["ReadersAre"], frozen=True, gc=False):
    """List the readers of a stream that this device seals."""

    stream: StreamName


class OverlayIs(Struct, frozen=True, gc=False):
    """The overlay that a stream has at this node from now on; for a while it also stays in the old one."""

    topic: TopicId
    overlay: Overlay
    before: Overlay


class RequestIs(Struct, frozen=True, gc=False):
    """A request to read, as a line for the stream's owner."""

    topic: TopicId
    line: str = field(name="request")


class ReaderIs(Struct, frozen=True, gc=False):
    """A device that may read a sealed stream."""

    person: AuthorId
    device: DeviceId
    key: PeerId
    label: str
    since: int = field(name="epoch")
    """The first epoch that it reads."""
    at: int
    """When it was let in, in Unix time."""


class ReadersAre(Struct, frozen=True, gc=False):
    """The readers of a sealed stream, and those that were just let in or removed."""

    topic: TopicId
    epoch: int
    since: float | None
    """When the present epoch began; None: no epoch has begun."""
    readers: tuple[ReaderIs, ...]
    changed: tuple[ReaderIs, ...] = ()


class Published(Struct, frozen=True, gc=False):
    """The events are durable here and were passed on; `fates` says what is known of them elsewhere."""

    topic: TopicId
    first: int
    ids: tuple[EventId, ...]
    neighbors: int
    """Neighbours that they were handed to; 0: they go out when one appears. Whether these pass them on is not
    known: only `fates` says where they arrived."""
    fates: tuple[ReceiverFate, ...]
    unsent: Reason | None = None
    """Why there is no neighbour, if that is known. ``no_address``: no tracker is known;
    ``unreachable_inbound``: nobody can dial this node, and no node that it could dial was named so far."""
    unconfirmed: Reason | None = None
    """Why not all storage nodes confirmed, if that was asked for: ``no_storage``, there are none;
    ``timeout``, not in time; ``quota`` or ``disk_full``, a storage node has no room."""


class Subscribed(Struct, frozen=True, gc=False):
    """The subscription is active."""

    topic: TopicId
    resumed: bool
    """Whether a durable subscription of this name existed before."""


class ChainStatus(Struct, frozen=True, gc=False):
    """How far one chain is known here."""

    author: AuthorId
    device: DeviceId
    last: int
    missing: int


class StreamStatus(Struct, frozen=True, gc=False):
    """The state of one stream at this node."""

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
    """Why the stream has no neighbours, if that is known: as in `Published.unsent`."""
    storage_checks: tuple[StorageCheck, ...] = ()
    """What came of the latest check of each storage node that this device publishes to."""
    refuses: Reason | None = None
    """Why this node, which keeps the stream for others, takes no newer events of some publishers: ``quota``,
    ``disk_full``."""
    lazy_peers: tuple[PeerId, ...] = ()
    """Members beside the neighbours with whom this node compares what there is."""
    helpers: tuple[PeerId, ...] = ()
    """Neighbours that no overlay named: they provided what the others did not."""
    replaced: int = 0
    """Neighbours that were replaced since they passed nothing on."""
    is_cut_off: bool = False
    """Whether others claim to have events that nobody hands over: this node may be cut off."""
