"""The configuration of a node as one tree of frozen values, and its translation for the node machine.

`linnet.node.config_file` reads it from ``linnet.toml``, `linnet.node.config_reference` writes its
documentation: a setting is described once, below its field. Sections that only pass parameters to one layer
are that layer's own type.
"""

from __future__ import annotations

from typing import Annotated, TypeVar

from msgspec import Meta, Struct, field

from linnet.content.config import ContentConfig, FastConfig
from linnet.core.ids import Contact, PeerId
from linnet.core.limits import NEIGHBORS, STREAM_NAME_CHARS
from linnet.delivery.config import DeliveryConfig
from linnet.edge.config import EdgeConfig, EdgeLimits, PresenceConfig, ProxyConfig, ProxyLimits
from linnet.identity.addresses import (
    parse_contact,
    parse_device,
    parse_hint,
    parse_person,
)
from linnet.names.config import STORES, NamesConfig, NamesLimits
from linnet.net.config import LanConfig, NetConfig
from linnet.overlay.config import DEFAULT_DEGREE, MemberConfig, Overlay, TrackerConfig
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.kademlia.config import KademliaConfig
from linnet.peer.config import LinkConfig, PeerConfig
from linnet.places.config import PlacesConfig
from linnet.rooms.config import RelayConfig, RelayLimits, RoomsConfig
from linnet.rooms.stamps import Bits
from linnet.streams.config import StorageRule, StreamOptions
from linnet.trace.records import Level

C = TypeVar("C", bound=Struct)
StreamName = Annotated[str, Meta(min_length=1, max_length=STREAM_NAME_CHARS)]
Address = Annotated[str, Meta(min_length=1, max_length=1024)]
Addresses = Annotated[tuple[Address, ...], Meta(max_length=8)]
Person = Annotated[str, Meta(min_length=1, max_length=128)]
Device = Annotated[str, Meta(min_length=1, max_length=128)]
InterfaceName = Annotated[str, Meta(min_length=1, max_length=32)]
Interfaces = Annotated[tuple[InterfaceName, ...], Meta(max_length=16)]


class NodeSection(Struct, frozen=True, forbid_unknown_fields=True):
    """The name, addresses and network of this node."""

    label: Annotated[str, Meta(max_length=64)] = ""
    """A name for this device, which is on its card and can be seen by others."""
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
    """What chooses the neighbours in a topic: "tracker", or "ring", where nodes find each other by gossip and
    no tracker is needed."""
    bootstrap: Annotated[tuple[Address, ...], Meta(max_length=64)] = ()
    """Nodes to contact first where there are no trackers, `KEY@HOST:PORT` each; any two that are online will
    do."""


class TrackerSection(TrackerConfig, frozen=True, forbid_unknown_fields=True):
    """Whether this node builds the graphs of streams, and how."""

    enabled: bool = False
    """Whether this node is a tracker. Every other node must then list it in `node.trackers`."""


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
    """Seconds that events are kept. Unset: forever."""
    quota: Annotated[int, Meta(ge=1)] | None = None
    """Bytes that the stream may take; the oldest events are removed first. Unset: up to
    `delivery.stored_stream_bytes`, and then the newest are refused."""


class StreamSection(Struct, frozen=True, forbid_unknown_fields=True):
    """How this node joins one stream, `[streams."NAME"]`, if its owner has declared nothing."""

    degree: Annotated[int, Meta(ge=2, le=NEIGHBORS)] = DEFAULT_DEGREE
    """Neighbours of a node in this stream."""
    near: bool = False
    """Whether half of the neighbours are chosen for a short round trip instead of by chance."""
    trackers: Addresses = ()
    """Trackers of this stream in order of preference, instead of those chosen by hashing."""
    overlay: Overlay | None = None
    """What chooses the neighbours in this stream. Unset: as `node.overlay` says."""
    storage: Addresses = ()
    """The storage nodes of this stream that you trust. Only their receipts count, and only they are asked for
    history. Unset: all nodes that offer to keep the stream are asked, and shown as volunteers."""


class RelaySection(RelayLimits, frozen=True, forbid_unknown_fields=True):
    """Whether this node keeps the events of rooms and places for members who are away, and for whom."""

    enabled: bool = False
    """Whether this node is a relay. A room uses it once a member names it there: `linnet room relays`."""
    allow: Annotated[tuple[Person, ...], Meta(max_length=10_000)] = ()
    """Person ids, `lp1…`, of the people who may ask this relay to serve their rooms. Where `policy` is
    "open", those who need no stamp."""
    stamp_bits: Bits = 21
    """Where `policy` is "open": the stamp (proof of work) that others make before this relay serves a new
    room of theirs, in bits; each bit doubles the work. 21 take about two seconds of one core. 0: none."""
    http: Annotated[str, Meta(max_length=1024)] = ""
    """The address where the relay also answers over HTTP: `127.0.0.1:PORT` for a program or a proxy of this
    machine, or `https://HOST:PORT` with the node's own certificate. Empty: none
    (docs/reference/relay-http.md)."""


class ProxySection(ProxyLimits, frozen=True, forbid_unknown_fields=True):
    """Whether this node takes part in streams for devices on the edge, and for which."""

    enabled: bool = False
    """Whether this node is a proxy. It sees its clients' addresses, when they are online, and which streams
    they want; it cannot read what is sealed or encrypted."""
    allow: Annotated[tuple[Device, ...], Meta(max_length=10_000)] = ()
    """Device ids, `ld1…`, of the devices that may be clients, where `open` is false."""


class EdgeSection(EdgeLimits, frozen=True, forbid_unknown_fields=True):
    """Whether this node is on the edge: it then has links to its proxies, and to devices on its local
    networks where `[lan]` is on and allows a topic there; it listens nowhere else and has no other links."""

    proxies: Annotated[tuple[Address, ...], Meta(max_length=16)] = ()
    """The proxies of this node in order of preference, `KEY@HOST:PORT` each. Empty: it is not on the edge."""


class LanSection(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether this node finds others on local networks, with or without the internet."""

    enabled: bool = False
    """Whether local networks are watched. The node then accepts links from them, and announces itself on a
    network as soon as a topic is allowed there: `linnet lan allow`."""
    interfaces: Interfaces = ()
    """Names of the interfaces that are watched. Empty: all that are up and lead to other machines."""


class TraceSection(Struct, frozen=True, forbid_unknown_fields=True):
    """What is written to `<home>/trace/`."""

    level: Level = Level.LOSS
    """`loss`: failures, links, and counters. `full`: everything, which tells who read what."""
    max_bytes: Annotated[int, Meta(ge=65_536)] = 16 * 1024 * 1024
    """The most bytes in a trace file; then a new one is begun."""
    keep: Annotated[int, Meta(ge=1, le=10_000)] = 8
    """The most trace files that are kept; the oldest are removed."""
    flush_seconds: Annotated[float, Meta(ge=0, le=60)] = 1.0
    """The most seconds that rows wait in memory. 0: none, so that even a killed process has written them
    all."""


class ControlSection(Struct, frozen=True, forbid_unknown_fields=True):
    """How programs of this machine talk to the node (docs/adr/0007-control-api.md)."""

    enabled: bool = True
    """Whether there is a control API. Without it the command line cannot reach the node."""
    socket: Annotated[str, Meta(max_length=1024)] = ""
    """Path of the Unix socket. Empty: `control.sock` in the home directory."""
    port: Annotated[int, Meta(ge=1, le=65_535)] | None = None
    """A loopback TCP port to answer at as well, for callers with the token in `<home>/control.token`. Unset:
    none."""
    max_request_bytes: Annotated[int, Meta(ge=1024, le=256 * 1024 * 1024)] = 8 * 1024 * 1024
    """The most bytes of a request; larger ones are refused with `too_large`."""
    max_subscriptions: Annotated[int, Meta(ge=1, le=65_536)] = 256
    """The most subscriptions that may be open over the control API."""


class NamesSection(NamesLimits, frozen=True, forbid_unknown_fields=True):
    """Where the records of our zone are kept, and what this node keeps for others."""

    stores: Annotated[tuple[Address, ...], Meta(max_length=STORES)] = ()
    """Nodes that keep our records while we are away and that are asked first, `KEY@HOST:PORT` each: relays or
    friends. Links to them are held. Empty: the peers that are linked anyway."""


class ContentSection(ContentConfig, frozen=True, forbid_unknown_fields=True):
    """Whether this node takes part in content, where people subscribe by predicates, and how."""

    enabled: bool = False
    """Whether it does. It then also carries subscriptions and events of others. Needs `kademlia.enabled`, by
    which nodes find each other."""


class GroupsSection(FastConfig, frozen=True, forbid_unknown_fields=True):
    """Groups of publishers in content, and what this node does for groups of others; see `[content]`."""


class KademliaSection(KademliaConfig, frozen=True, forbid_unknown_fields=True):
    """Whether this node takes part in the hash table over the network, where names are kept, and how."""

    enabled: bool = False
    """Whether it does. It then links to the nodes that it asks, and keeps records for anybody."""
    bootstrap: Annotated[tuple[Address, ...], Meta(max_length=64)] = ()
    """Nodes of the hash table to contact first, `KEY@HOST:PORT` each; any two that are online will do."""


class NodeConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole configuration. Its defaults suit a private network on one machine."""

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
        """The addresses to listen at, in canonical spelling; none on the edge."""
        if self.edge.proxies:
            return ()
        return tuple(parse_hint(address, any_port=True) for address in self.node.listen)

    @property
    def trackers(self) -> tuple[Contact, ...]:
        """The trackers of the network."""
        return _contacts(self.node.trackers)

    @property
    def advertised(self) -> tuple[str, ...]:
        """The addresses to tell others, if they differ from where we listen."""
        return tuple(map(parse_hint, self.node.advertise))


def chosen_peers(config: NodeConfig) -> frozenset[PeerId]:
    """Return the peers that the user names in the configuration: no stranger can have them dialled."""
    streams = config.streams.values()
    return frozenset(
        contact.peer
        for contact in (
            *config.trackers,
            *_contacts(config.node.bootstrap),
            *_contacts(config.kademlia.bootstrap),
            *_contacts(config.edge.proxies),
            *_contacts(config.names.stores),
            *(each for stream in streams for each in _contacts((*stream.trackers, *stream.storage))),
        )
    )


def peer_config(config: NodeConfig, peer: PeerId, bound: tuple[str, ...], agent: str) -> PeerConfig:
    """Return the configuration of the node machine, with its own key and the bound addresses."""
    listens = config.advertised or bound
    trackers = config.trackers
    if config.tracker.enabled and all(contact.peer != peer for contact in trackers):
        # The others have it in their lists; it cannot name its own port before it has one.
        trackers = (*trackers, Contact(peer, listens))
    relay, proxy = config.relay, config.proxy
    proxies, stores = _contacts(config.edge.proxies), _contacts(config.names.stores)
    people, devices = tuple(map(parse_person, relay.allow)), tuple(map(parse_device, proxy.allow))
    return PeerConfig(
        listens=listens,
        trackers=trackers,
        overlay=config.node.overlay,
        trackerless=_told(TrackerlessConfig, config.trackerless) if _is_trackerless(config) else None,
        bootstrap=_contacts(config.node.bootstrap),
        is_tracker=config.tracker.enabled,
        storage=tuple(StorageRule(rule.stream, rule.retention, rule.quota) for rule in config.storage),
        streams={
            name: StreamOptions(
                stream.degree,
                stream.near,
                _contacts(stream.trackers),
                stream.overlay,
                _contacts(stream.storage),
            )
            for name, stream in config.streams.items()
        },
        agent=agent,
        member=config.overlay,
        tracker=config.tracker,
        delivery=config.delivery,
        links=config.links,
        rooms=config.rooms,
        names=_told(NamesConfig, config.names, stores=stores),
        kademlia=_told(KademliaConfig, config.kademlia) if config.kademlia.enabled else None,
        kademlia_bootstrap=_contacts(config.kademlia.bootstrap),
        content=_told(ContentConfig, config.content) if config.content.enabled else None,
        fast=_told(FastConfig, config.content_groups),
        places=config.places,
        relay=_told(RelayConfig, relay, allow=people) if relay.enabled else None,
        edge=_told(EdgeConfig, config.edge, proxies=proxies),
        proxy=_told(ProxyConfig, proxy, allow=devices) if proxy.enabled else None,
        lan=PresenceConfig() if config.lan.enabled else None,
    )


def lan_config(config: NodeConfig) -> LanConfig | None:
    """Return the driver's configuration of local networks."""
    return LanConfig(interfaces=config.lan.interfaces) if config.lan.enabled else None


def _told(kind: type[C], section: Struct, **parsed: object) -> C:
    """Return a layer's configuration from its section; `parsed` has the fields that users write as text."""
    shared = {name: getattr(section, name) for name in kind.__struct_fields__}
    return kind(**shared | parsed)


def _is_trackerless(config: NodeConfig) -> bool:
    chosen = (config.node.overlay, *(stream.overlay for stream in config.streams.values()))
    return config.trackerless.enabled or bool(config.node.bootstrap) or Overlay.RING in chosen


def _contacts(addresses: tuple[str, ...]) -> tuple[Contact, ...]:
    return tuple(map(parse_contact, addresses))
