"""The application's commands about local networks and proxies, and their answers."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct, field

from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.machine.commands import Command, Done, Hex


class AllowOnNetwork(Command[Done], frozen=True, gc=False):
    """Allow or deny a topic on a network."""

    topic: TopicId
    network: bytes
    is_allowed: bool


class ExamineLan(Command["LanStatus"], frozen=True, gc=False):
    """List the local networks that this device is on, or on which a topic is allowed."""


class MetPeer(NamedTuple):
    """A device on a local network. Its hints work only there."""

    device: PeerId
    hints: tuple[str, ...]


class NetworkStatus(Struct, frozen=True, gc=False):
    """The state of one network."""

    network: Hex
    name: str
    is_here: bool
    """Whether this device is on it now."""
    is_announced: bool
    """Whether this device announces itself there: it does where a topic is allowed."""
    topics: tuple[TopicId, ...]
    """The topics that are allowed there."""
    heard: int
    """The number of nodes that announce themselves there, met or not."""
    peers: tuple[MetPeer, ...]
    """The devices that were met."""


class LanStatus(Struct, frozen=True, gc=False):
    """The state of local networks."""

    networks: tuple[NetworkStatus, ...]
    is_enabled: bool = True
    """Whether this node listens to local networks at all."""


class Sleep(Command[Done], frozen=True, gc=False):
    """Close all links of a node on the edge; events wait at its proxies meanwhile."""


class Wake(Command[Done], frozen=True, gc=False):
    """Connect to the proxies again."""


class ExamineEdge(Command["EdgeStatus"], frozen=True, gc=False):
    """List our proxies, and the clients that we serve."""


class Refusal(NamedTuple):
    """A stream that a proxy does not serve us, and why."""

    stream: str
    reason: Reason


class ProxyStatus(Struct, frozen=True, gc=False):
    """One of our proxies. It knows our address, when we are online, and which streams we want."""

    peer: PeerId = field(name="proxy")
    hints: tuple[str, ...]
    used: bool
    """Whether we need a link to it now."""
    up: bool
    served: int
    """Streams that it serves us."""
    refusals: tuple[Refusal, ...]
    """Streams that it does not serve us."""
    kept_bytes: int
    """Bytes that it keeps of our streams."""
    most_bytes: int
    last_failure: Reason | None


class ClientStatus(Struct, frozen=True, gc=False):
    """A device that this node serves as its proxy."""

    peer: PeerId = field(name="client")
    up: bool
    streams: tuple[str, ...]
    kept_bytes: int
    most_bytes: int
    last_here: float
    """When it was last linked, Unix time."""


class EdgeStatus(Struct, frozen=True, gc=False):
    """The state of the edge at this node."""

    is_edge: bool
    """Whether this node is on the edge: beyond local networks it has links to its proxies alone."""
    is_proxy: bool
    asleep: bool
    proxies: tuple[ProxyStatus, ...]
    clients: tuple[ClientStatus, ...]
