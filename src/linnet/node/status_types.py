"""What the control API tells of a node as a whole: its links, and its part in what others do."""

from __future__ import annotations

from msgspec import Struct

from linnet.node.control_types import RoomView, StreamView
from linnet.overlay.config import Overlay


class PeerView(Struct, frozen=True):
    """One link, open or wanted."""

    device: str
    up: bool
    dialed: bool
    needed: tuple[str, ...]
    wanted: bool
    rtt: float | None
    since: float | None
    agent: str
    roles: tuple[str, ...]
    last_failure: str | None
    needed_for: tuple[str, ...] = ()
    """The same as `needed`, with the names of streams, rooms and places instead of their numbers."""


class PeersReply(Struct, frozen=True):
    """All links."""

    peers: tuple[PeerView, ...]


class HashTableView(Struct, frozen=True):
    """This node's part in the hash table over the network."""

    known: int
    """Nodes in its table."""
    kept: int
    """Records that it keeps for others."""
    placed: int
    """Records of its own that it has others keep."""


class ContentView(Struct, frozen=True):
    """This node's part in content."""

    subscriptions: int
    """Of its own, those that go by rendezvous."""
    filters: int
    """That it holds for itself and others."""
    rendezvous: tuple[str, ...]
    """Attributes of which it is the rendezvous, as far as it knows."""
    arrivals: int
    """Events that came to it as that, since it is up."""


class StatusReply(Struct, frozen=True):
    """How things stand at this node."""

    version: str
    device: str
    person: str
    label: str
    contact: str
    """What others write to dial this node."""
    started_at: float
    now: float
    roles: tuple[str, ...]
    listens: tuple[str, ...]
    reachable: bool | None
    reachable_reason: str | None
    blocked: tuple[str, ...]
    peers: tuple[PeerView, ...]
    streams: tuple[StreamView, ...]
    rooms: tuple[RoomView, ...]
    tracked: tuple[str, ...]
    """Topics that this node tracks."""
    overlay: Overlay = Overlay.TRACKER
    """Of streams and rooms of which nothing else is said."""
    hash_table: HashTableView | None = None
    """None: this node takes no part."""
    content: ContentView | None = None
    """None: this node takes no part."""
