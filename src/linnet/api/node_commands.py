"""The commands that a node answers itself, from its settings, its files and several parts of its machine."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct, field

from linnet.core.ids import AuthorId, DeviceId, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.edge.commands import NetworkStatus
from linnet.identity.keys import SIGNATURE_BYTES
from linnet.machine.commands import Command, Done, Hex
from linnet.overlay.config import Overlay
from linnet.peer.interface import ContentStatus, HashTableStatus, PeerStatus
from linnet.rooms.commands import Departure, RoomStatus
from linnet.streams.commands import Moment, StreamName, StreamStatus, Subscribed


class ReportStatus(Command["StatusReport"], frozen=True, gc=False):
    """Report the state of this node."""


class StatusReport(Struct, frozen=True):
    """The state of this node."""

    version: str
    device: PeerId
    person: AuthorId
    label: str
    contact: str
    """The contact by which others dial this node."""
    started_at: float
    now: float
    roles: tuple[str, ...]
    listens: tuple[str, ...]
    reachable: bool | None
    """Whether a tracker could dial us back; None: not known yet."""
    reachable_reason: Reason | None
    blocked: tuple[PeerId, ...]
    peers: tuple[PeerStatus, ...]
    streams: tuple[StreamStatus, ...]
    rooms: tuple[RoomStatus, ...]
    tracked: tuple[TopicId, ...]
    """Topics that this node tracks."""
    overlay: Overlay = Overlay.TRACKER
    """The overlay of streams and rooms for which no other is configured."""
    hash_table: HashTableStatus | None = None
    """The node's part in the hash table; null: none."""
    content: ContentStatus | None = None
    """The node's part in content; null: none."""
    departures: tuple[Departure, ...] = ()
    """Rooms that we left and whose members have not been told yet, as far as is known."""
    clock_behind: float = 0.0
    """Seconds by which this node's clock is behind those of most linked peers; 0: by no more than five
    minutes, or too few peers tell the time."""


class ReadHistory(Command[Subscribed], frozen=True, gc=False):
    """Read what is kept of a stream; ends with the history."""

    subscription: int
    stream: StreamName
    since: Moment = 0.0
    """Unix time from which on events are wanted, 0 for all that is kept."""
    ordered: bool = True
    """Whether each publisher's events come in order."""


class ListPeers(Command["PeersAre"], frozen=True, gc=False):
    """List every link, open or wanted."""


class PeersAre(Struct, frozen=True):
    """Every link, open or wanted."""

    peers: tuple[PeerStatus, ...]


class ReportHealth(Command["HealthReport"], frozen=True, gc=False):
    """Report what the node knows about its own health."""


class Check(Struct, frozen=True):
    """One result of `linnet doctor`."""

    name: str
    ok: bool
    detail: str
    """The result of the check."""
    advice: str = ""
    """What to do about it, if there is a problem."""


class HealthReport(Struct, frozen=True):
    """What the running node knows about its own health."""

    checks: tuple[Check, ...]


class ExamineGraph(Command["GraphReport"], frozen=True, gc=False):
    """Return the graph of a topic that this node tracks."""

    topic: TopicId
    """The id of the topic."""


class GraphNode(Struct, frozen=True):
    """A node of a graph and its neighbours."""

    device: PeerId
    neighbors: tuple[PeerId, ...]


class GraphRtt(Struct, frozen=True):
    """The round-trip time of a link in seconds, as one end measured it."""

    reporter: PeerId
    neighbor: PeerId
    rtt: float


class GraphReport(Struct, frozen=True):
    """The graph of a topic, as its tracker here holds it."""

    topic: TopicId
    degree: int
    near: bool
    nodes: tuple[GraphNode, ...]
    rtts: tuple[GraphRtt, ...]


class StopNode(Command[Done], frozen=True, gc=False):
    """Stop the node in good order."""


class AllowOnLan(Command[NetworkStatus], frozen=True, gc=False):
    """Allow or deny a topic on a local network; kept over restarts."""

    topic: TopicId
    is_allowed: bool
    network: Annotated[Hex, Meta(min_length=32, max_length=32)] | None = None
    """Null: the only network that this device is on."""


class ListDevices(Command["DevicesAre"], frozen=True, gc=False):
    """List the devices of our person."""


class OwnDevice(Struct, frozen=True):
    """A device of ours, as far as this node has met it or was told of it."""

    id: DeviceId
    """The device's name in events."""
    key: PeerId | None = field(name="device")
    """Its key; null: no event of it is kept here."""
    label: str
    is_this: bool
    is_online: bool
    """Whether it is linked to this node in a room."""
    not_before: int | None
    not_after: int | None
    is_revoked: bool
    """Whether this node, as a reader of streams, was told that it is revoked."""
    revoked_in: tuple[TopicId, ...]
    """The rooms in which it is revoked."""


class DevicesAre(Struct, frozen=True):
    """The devices of the person, as far as this node has met them."""

    person: AuthorId
    rooms: tuple[TopicId, ...]
    """The rooms of which this node is a member."""
    devices: tuple[OwnDevice, ...]


class RevokeDevice(Command["DeviceRevoked"], frozen=True, gc=False):
    """Revoke a device of ours in streams and in every room that this node is in."""

    device: DeviceId
    at: Annotated[int, Meta(ge=0, le=2**40)]
    """The time of the revocation, Unix time in seconds."""
    signature: Annotated[bytes, Meta(min_length=SIGNATURE_BYTES, max_length=SIGNATURE_BYTES)]
    """The person's signature of the revocation."""


class Outcome(StrEnum):
    """The outcome of a revocation in one room."""

    REVOKED = "revoked"
    ALREADY = "already"
    REFUSED = "refused"
    SKIPPED = "skipped"
    """We are not a member there, so the room would not accept it."""


class RoomOutcome(Struct, frozen=True):
    """The outcome of a revocation in one room, and where it was sent."""

    room: TopicId
    name: str | None
    outcome: Outcome
    event: EventId | None = None
    neighbors: int = 0
    relays: tuple[PeerId, ...] = ()
    reason: Reason | None = None
    detail: str = ""


class DeviceRevoked(Struct, frozen=True):
    """The device is revoked in streams; `rooms` has the outcome in each room."""

    device: DeviceId
    rooms: tuple[RoomOutcome, ...]
