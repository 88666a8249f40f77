"""All that can be configured about a node, as one tree of frozen values.

`linnet.node.config_file` reads it from ``linnet.toml``, `linnet.node.config_reference` writes its
documentation: a setting is described once, below its field. Sections that only pass parameters to
one layer are that layer's own type.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, field

from linnet.core.ids import Contact
from linnet.core.limits import NEIGHBORS, STREAM_NAME_CHARS
from linnet.delivery.config import DeliveryConfig
from linnet.edge.proxy_config import EdgeLimits, ProxyLimits
from linnet.net.config import NetConfig
from linnet.node.addresses import parse_contact, parse_hint
from linnet.node.content_section import ContentSection, GroupsSection
from linnet.node.kademlia_section import (
    KademliaSection,
)
from linnet.node.names_section import NamesSection
from linnet.overlay.config import DEFAULT_DEGREE, MemberConfig, Overlay, TrackerConfig
from linnet.overlay.trackerless.config import TrackerlessConfig
from linnet.peer.config import LinkConfig
from linnet.places.config import PlacesConfig
from linnet.rooms.config import RelayLimits, RoomsConfig
from linnet.trace.records import Level

StreamName = Annotated[str, Meta(min_length=1, max_length=STREAM_NAME_CHARS)]
Address = Annotated[str, Meta(min_length=1, max_length=1024)]
Addresses = Annotated[tuple[Address, ...], Meta(max_length=8)]
Person = Annotated[str, Meta(min_length=1, max_length=128)]
Device = Annotated[str, Meta(min_length=1, max_length=128)]
InterfaceName = Annotated[str, Meta(min_length=1, max_length=32)]
Interfaces = Annotated[tuple[InterfaceName, ...], Meta(max_length=16)]


class NodeSection(Struct, frozen=True, forbid_unknown_fields=True):
    """Who this node is and where it stands."""

    label: Annotated[str, Meta(max_length=64)] = ""
    """A name for this device, which its card carries and others may see."""
    listen: Addresses = ("tls://127.0.0.1:0",)
    """Addresses to accept links at: `tls://HOST:PORT` or `wss://HOST:PORT`; port 0 takes a free
    one at the first start and the same at every later one, if nobody else has it by then.
    An empty list: this node only dials."""
    listen_wide: bool = False
    """Whether addresses that other machines can reach are allowed in `listen`. A node is private to
    this machine until this is true."""
    advertise: Addresses = ()
    """Addresses to tell others, where they differ from `listen`: behind a router or a name. Needed
    with a wildcard such as 0.0.0.0."""
    trackers: Annotated[tuple[Address, ...], Meta(max_length=64)] = ()
    """All trackers of this network, `KEY@HOST:PORT` each. Every node needs the same list, in any
    order: which of them builds a stream's graph, and which stands by, is computed from it."""
    overlay: Overlay = Overlay.TRACKER
    """Who says who the neighbours in a topic are: "tracker", or "ring", where nodes find each other by
    gossip and no tracker is needed."""
    bootstrap: Annotated[tuple[Address, ...], Meta(max_length=64)] = ()
    """Nodes to begin with where there are no trackers, `KEY@HOST:PORT` each; any two that are up will do."""


class TrackerSection(TrackerConfig, frozen=True, forbid_unknown_fields=True):
    """Whether this node builds the graphs of streams, and how."""

    enabled: bool = False
    """Whether this node is a tracker. It must then stand in `node.trackers` of every other node."""


class TrackerlessSection(TrackerlessConfig, frozen=True, forbid_unknown_fields=True):
    """Whether this node takes part in overlays without trackers, and how."""

    enabled: bool = False
    """Whether this node finds others by gossip. It does so anyway if `node.overlay`, or that of a stream, is
    "ring", or if `node.bootstrap` names nodes."""


class StorageSection(Struct, frozen=True, forbid_unknown_fields=True):
    """A stream that this node keeps for others. Write one `[[storage]]` for each."""

    stream: StreamName
    """Name of the stream."""
    retention: Annotated[float, Meta(gt=0)] | None = None
    """Seconds that events are kept. Unset: for good."""
    quota: Annotated[int, Meta(ge=1)] | None = None
    """Bytes that the stream may take; the oldest events go first. Unset: no bound."""


class StreamSection(Struct, frozen=True, forbid_unknown_fields=True):
    """How this node joins one stream, `[streams."NAME"]`, if its owner has declared nothing."""

    degree: Annotated[int, Meta(ge=2, le=NEIGHBORS)] = DEFAULT_DEGREE
    """Neighbours of a node in this stream."""
    near: bool = False
    """Whether half of the neighbours are chosen for a short way instead of by chance."""
    trackers: Addresses = ()
    """Trackers of this stream in order of preference, instead of those that hashing gives."""
    overlay: Overlay | None = None
    """Who says who the neighbours in this stream are. Unset: as `node.overlay` says."""


class RelaySection(RelayLimits, frozen=True, forbid_unknown_fields=True):
    """Whether this node holds the events of rooms and places for those who are away, and whose."""

    enabled: bool = False
    """Whether this node is a relay. A room uses it once a member names it there: `linnet room relays`."""
    allow: Annotated[tuple[Person, ...], Meta(max_length=10_000)] = ()
    """Person ids, `lp1…`, of those who may ask this relay to serve their rooms, where `policy` is "allow"."""
    http: Annotated[str, Meta(max_length=1024)] = ""
    """Where the relay answers over HTTP too: `127.0.0.1:PORT` for a program or a proxy of this machine, or
    `https://HOST:PORT` with the node's own certificate. Empty: nowhere (docs/reference/relay-http.md)."""


class ProxySection(ProxyLimits, frozen=True, forbid_unknown_fields=True):
    """Whether this node takes part in streams for devices on the edge, and for which."""

    enabled: bool = False
    """Whether this node is a proxy. It sees its clients' addresses, when they are there and which streams
    they want; what is sealed or encrypted it cannot read."""
    allow: Annotated[tuple[Device, ...], Meta(max_length=10_000)] = ()
    """Device ids, `ld1…`, of those who may be clients, where `open` is false."""


class EdgeSection(EdgeLimits, frozen=True, forbid_unknown_fields=True):
    """Whether this node is on the edge: it then has links to its proxies, and to devices on its local
    networks where `[lan]` is on and allows a topic there; it listens nowhere else and has no other links."""

    proxies: Annotated[tuple[Address, ...], Meta(max_length=16)] = ()
    """The proxies of this node in order of preference, `KEY@HOST:PORT` each. Empty: it is not on the edge."""


class LanSection(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether this node finds others on local networks, with or without the internet."""

    enabled: bool = False
    """Whether local networks are watched. The node then takes links from them, and shows itself on a network
    as soon as a topic is allowed there: `linnet lan allow`."""
    interfaces: Interfaces = ()
    """Names of the interfaces that are watched. Empty: all that are up and lead to other machines."""


class TraceSection(Struct, frozen=True, forbid_unknown_fields=True):
    """What is written to `<home>/trace/`."""

    level: Level = Level.LOSS
    """`loss`: what went wrong, links, and counters. `full`: everything, which tells who read what."""
    max_bytes: Annotated[int, Meta(ge=65_536)] = 16 * 1024 * 1024
    """Bytes of one trace file; then the next is begun."""
    keep: Annotated[int, Meta(ge=1, le=10_000)] = 8
    """Trace files that are kept; the oldest are removed."""
    flush_seconds: Annotated[float, Meta(ge=0, le=60)] = 1.0
    """Seconds that rows wait in memory at most. 0: none does, so that a killed process leaves them all."""


class ControlSection(Struct, frozen=True, forbid_unknown_fields=True):
    """How programs of this machine talk to the node (docs/adr/0007-control-api.md)."""

    enabled: bool = True
    """Whether there is a control API. Without it the command line cannot reach the node."""
    socket: Annotated[str, Meta(max_length=1024)] = ""
    """Path of the Unix socket. Empty: `control.sock` in the home directory."""
    port: Annotated[int, Meta(ge=1, le=65_535)] | None = None
    """Loopback TCP port to answer at as well, for callers that present the token in
    `<home>/control.token`. Unset: none."""
    max_request_bytes: Annotated[int, Meta(ge=1024, le=256 * 1024 * 1024)] = 8 * 1024 * 1024
    """Bytes of one request; more are refused with `too_large`."""
    max_subscriptions: Annotated[int, Meta(ge=1, le=65_536)] = 256
    """Subscriptions that may be open over the control API at once."""


class NodeConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything. Each part has defaults that suit a private network on one machine."""

    node: NodeSection = NodeSection()
    tracker: TrackerSection = TrackerSection()
    storage: Annotated[tuple[StorageSection, ...], Meta(max_length=10_000)] = ()
    streams: Annotated[dict[StreamName, StreamSection], Meta(max_length=10_000)] = field(default_factory=dict)
    relay: RelaySection = RelaySection()
    rooms: RoomsConfig = RoomsConfig()
    places: PlacesConfig = PlacesConfig()
    edge: EdgeSection = EdgeSection()
    proxy: ProxySection = ProxySection()
    lan: LanSection = LanSection()
    names: NamesSection = NamesSection()
    kademlia: KademliaSection = KademliaSection()
    content: ContentSection = ContentSection()
    content_groups: GroupsSection = GroupsSection()
    trace: TraceSection = TraceSection()
    control: ControlSection = ControlSection()
    overlay: MemberConfig = MemberConfig()
    trackerless: TrackerlessSection = TrackerlessSection()
    delivery: DeliveryConfig = DeliveryConfig()
    links: LinkConfig = LinkConfig()
    net: NetConfig = NetConfig()

    @property
    def listens(self) -> tuple[str, ...]:
        """The addresses to listen at, in their one spelling; none on the edge."""
        if self.edge.proxies:
            return ()
        return tuple(parse_hint(address, any_port=True) for address in self.node.listen)

    @property
    def trackers(self) -> tuple[Contact, ...]:
        """The trackers of the network."""
        return tuple(map(parse_contact, self.node.trackers))

    @property
    def advertised(self) -> tuple[str, ...]:
        """What to tell others, if that is not where we listen."""
        return tuple(map(parse_hint, self.node.advertise))
