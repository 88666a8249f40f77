"""All that can be configured about a node, as one tree of frozen values.

`linnet.node.config_file` reads it from ``linnet.toml``, `linnet.node.config_reference` writes its
documentation: a setting is described once, below its field. Sections that only pass parameters to
one layer are that layer's own type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from msgspec import Meta, Struct, field
from msgspec.structs import asdict

from linnet.core.errors import BadText, ConfigError
from linnet.core.ids import AuthorId, Contact, PeerId
from linnet.core.limits import NEIGHBORS, STREAM_NAME_CHARS
from linnet.delivery.config import DeliveryConfig
from linnet.edge.config import PresenceConfig
from linnet.edge.proxy_config import EdgeConfig, EdgeLimits, ProxyConfig, ProxyLimits
from linnet.identity.text import Sort, from_text
from linnet.net.config import LanConfig, NetConfig
from linnet.node.addresses import is_loopback, parse_contact, parse_hint, parse_http, split_hint
from linnet.node.config_types import Problem
from linnet.node.kademlia_section import (
    KademliaSection,
    kademlia_bootstrap,
    kademlia_config,
    kademlia_problems,
)
from linnet.node.names_section import NamesSection, names_config, names_problems
from linnet.node.toml_lines import Path
from linnet.overlay.config import DEFAULT_DEGREE, MemberConfig, Overlay, TrackerConfig
from linnet.overlay.trackerless.config import TrackerlessConfig
from linnet.overlay.trackerless.plausible import filter_faults
from linnet.peer.config import LinkConfig, PeerConfig
from linnet.places.config import PlacesConfig
from linnet.rooms.config import RelayConfig, RelayLimits, RelayPolicy, RoomsConfig
from linnet.streams.options import StorageRule, StreamOptions
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
    """Addresses to accept links at: `tls://HOST:PORT` or `wss://HOST:PORT`; port 0 takes a free one.
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


def problems_of(config: NodeConfig) -> list[Problem]:
    """What types alone do not see: addresses, repeated streams, listening wider than was said."""
    found: list[Problem] = []
    for number, address in enumerate(config.node.listen):
        found += _listen_problem(config.node, number, address)
    for number, address in enumerate(config.node.advertise):
        found += _address_problem(("node", "advertise", number), parse_hint, address)
    for number, address in enumerate(config.node.trackers):
        found += _address_problem(("node", "trackers", number), parse_contact, address)
    for number, address in enumerate(config.node.bootstrap):
        found += _address_problem(("node", "bootstrap", number), parse_contact, address)
    for name, stream in config.streams.items():
        for number, address in enumerate(stream.trackers):
            found += _address_problem(("streams", name, "trackers", number), parse_contact, address)
    if config.tracker.enabled and config.tracker.control is not config.overlay.control:
        found.append(
            Problem(("tracker", "control"), "differs from overlay.control; a network speaks one of them")
        )
    for number, person in enumerate(config.relay.allow):
        found += _address_problem(("relay", "allow", number), _person, person)
    if config.relay.allow and config.relay.policy is RelayPolicy.OPEN:
        found.append(
            Problem(("relay", "allow"), 'has no meaning where relay.policy is "open": take one of them out')
        )
    found += [Problem(("trackerless", name), what) for name, what in filter_faults(config.trackerless)]
    found += [*_http_problem(config), *_edge_problems(config), *names_problems(config.names)]
    found += kademlia_problems(config.kademlia, bool(config.edge.proxies))
    seen: dict[str, None] = {}
    for number, rule in enumerate(config.storage):
        if rule.stream in seen:
            found.append(Problem(("storage", number, "stream"), f"{rule.stream!r} is stored twice; keep one"))
        seen[rule.stream] = None
    return found


def check(config: NodeConfig) -> None:
    """Raise `ConfigError` with all that is wrong; a configuration from a file was checked already."""
    found = problems_of(config)
    if found:
        raise ConfigError("\n".join(f"{path_text(problem.path)}: {problem.what}" for problem in found))


def path_text(path: Path) -> str:
    """A path as people write it: ``streams."a b".degree``, ``storage[2].quota``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            shown = part if part.isidentifier() and part.isascii() else f'"{part}"'
            text += f".{shown}" if text else shown
    return text


def peer_config(config: NodeConfig, peer: PeerId, bound: tuple[str, ...], agent: str) -> PeerConfig:
    """What the node machine is told, with its own key and the addresses that were bound."""
    listens = config.advertised or bound
    trackers = config.trackers
    if config.tracker.enabled and all(contact.peer != peer for contact in trackers):
        # The others have it in their lists; it cannot name its own port before it has one.
        trackers = (*trackers, Contact(peer, listens))
    return PeerConfig(
        listens=listens,
        trackers=trackers,
        overlay=config.node.overlay,
        trackerless=_trackerless_config(config),
        bootstrap=tuple(map(parse_contact, config.node.bootstrap)),
        is_tracker=config.tracker.enabled,
        storage=tuple(StorageRule(rule.stream, rule.retention, rule.quota) for rule in config.storage),
        streams={
            name: StreamOptions(
                stream.degree, stream.near, tuple(map(parse_contact, stream.trackers)), stream.overlay
            )
            for name, stream in config.streams.items()
        },
        agent=agent,
        member=config.overlay,
        tracker=config.tracker,
        delivery=config.delivery,
        links=config.links,
        rooms=config.rooms,
        names=names_config(config.names),
        kademlia=kademlia_config(config.kademlia),
        kademlia_bootstrap=kademlia_bootstrap(config.kademlia),
        places=config.places,
        relay=_relay_config(config.relay) if config.relay.enabled else None,
        edge=_edge_config(config.edge),
        proxy=_proxy_config(config.proxy) if config.proxy.enabled else None,
        lan=PresenceConfig() if config.lan.enabled else None,
    )


def lan_config(config: NodeConfig) -> LanConfig | None:
    """What the driver is told of local networks."""
    return LanConfig(interfaces=config.lan.interfaces) if config.lan.enabled else None


def _trackerless_config(config: NodeConfig) -> TrackerlessConfig | None:
    section = config.trackerless
    chosen = (config.node.overlay, *(stream.overlay for stream in config.streams.values()))
    if not (section.enabled or config.node.bootstrap or Overlay.RING in chosen):
        return None
    names = TrackerlessConfig.__struct_fields__
    return TrackerlessConfig(**{name: value for name, value in asdict(section).items() if name in names})


def _relay_config(section: RelaySection) -> RelayConfig:
    limits = {name: value for name, value in asdict(section).items() if name in RelayConfig.__struct_fields__}
    limits["allow"] = tuple(map(_person, section.allow))
    return RelayConfig(**limits)


def _edge_config(section: EdgeSection) -> EdgeConfig:
    limits = {name: value for name, value in asdict(section).items() if name in EdgeLimits.__struct_fields__}
    return EdgeConfig(**limits, proxies=tuple(map(parse_contact, section.proxies)))


def _proxy_config(section: ProxySection) -> ProxyConfig:
    limits = {name: value for name, value in asdict(section).items() if name in ProxyLimits.__struct_fields__}
    return ProxyConfig(**limits, allow=tuple(map(_device, section.allow)))


def _device(text: str) -> PeerId:
    return PeerId(from_text(Sort.DEVICE, text))


def _person(text: str) -> AuthorId:
    return AuthorId(from_text(Sort.PERSON, text))


def _listen_problem(node: NodeSection, number: int, address: str) -> list[Problem]:
    path: Path = ("node", "listen", number)
    found = _address_problem(path, lambda text: parse_hint(text, any_port=True), address)
    if found:
        return found
    host = split_hint(address)[0]
    if not is_loopback(host) and not node.listen_wide:
        wider = f"{address!r} can be reached from other machines; set listen_wide = true if that is meant, "
        return [Problem(path, wider + "or listen at 127.0.0.1")]
    if host in ("0.0.0.0", "::") and not node.advertise:  # noqa: S104 - compared, not bound
        return [
            Problem(path, f"{address!r} is every address of this machine: name in advertise the one to dial")
        ]
    return []


def _edge_problems(config: NodeConfig) -> list[Problem]:
    """A node on the edge has no other role; whom a proxy serves is said once."""
    found: list[Problem] = []
    for number, address in enumerate(config.edge.proxies):
        found += _address_problem(("edge", "proxies", number), parse_contact, address)
    for number, device in enumerate(config.proxy.allow):
        found += _address_problem(("proxy", "allow", number), _device, device)
    if config.proxy.allow and config.proxy.open:
        found.append(
            Problem(("proxy", "allow"), "has no meaning where proxy.open is true: take one of them out")
        )
    if not config.edge.proxies:
        return found
    told = (
        "has no meaning on the edge, where a node has links to its proxies and on local networks alone: "
        "take it or edge.proxies out"
    )
    others: dict[Path, bool] = {
        ("node", "listen"): config.node.listen not in ((), NodeSection().listen),
        ("node", "advertise"): bool(config.node.advertise),
        ("node", "trackers"): bool(config.node.trackers),
        ("node", "bootstrap"): bool(config.node.bootstrap),
        ("node", "overlay"): config.node.overlay is not Overlay.TRACKER,
        ("trackerless", "enabled"): config.trackerless.enabled,
        ("tracker", "enabled"): config.tracker.enabled,
        ("relay", "enabled"): config.relay.enabled,
        ("proxy", "enabled"): config.proxy.enabled,
        ("storage",): bool(config.storage),
    }
    return [*found, *(Problem(path, told) for path, is_set in others.items() if is_set)]


def _http_problem(config: NodeConfig) -> list[Problem]:
    path: Path = ("relay", "http")
    if not config.relay.http:
        return []
    found = _address_problem(path, parse_http, config.relay.http)
    if found:
        return found
    if not config.relay.enabled:
        return [Problem(path, "has no meaning where relay.enabled is false")]
    if not is_loopback(parse_http(config.relay.http).host) and not config.node.listen_wide:
        wider = (
            f"{config.relay.http!r} can be reached from other machines; set node.listen_wide = true if that "
        )
        return [Problem(path, wider + "is meant, or serve it at 127.0.0.1")]
    return []


def _address_problem(path: Path, parse: Callable[[str], object], text: str) -> list[Problem]:
    try:
        parse(text)
    except BadText as error:
        return [Problem(path, str(error))]
    return []
