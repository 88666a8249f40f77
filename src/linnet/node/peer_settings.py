"""What the node machine and its driver are told, made from the configuration of a node."""

from __future__ import annotations

from msgspec.structs import asdict

from linnet.core.ids import Contact, PeerId
from linnet.edge.config import PresenceConfig
from linnet.edge.proxy_config import EdgeConfig, EdgeLimits, ProxyConfig, ProxyLimits
from linnet.net.config import LanConfig
from linnet.node.addresses import (
    parse_contact,
    parse_device,
    parse_person,
)
from linnet.node.config import EdgeSection, NodeConfig, ProxySection, RelaySection
from linnet.node.content_section import content_config, groups_config
from linnet.node.kademlia_section import (
    kademlia_bootstrap,
    kademlia_config,
)
from linnet.node.names_section import names_config
from linnet.overlay.config import Overlay
from linnet.overlay.trackerless.config import TrackerlessConfig
from linnet.peer.config import PeerConfig
from linnet.rooms.config import RelayConfig
from linnet.streams.options import StorageRule, StreamOptions


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
        content=content_config(config.content),
        fast=groups_config(config.content_groups),
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
    limits["allow"] = tuple(map(parse_person, section.allow))
    return RelayConfig(**limits)


def _edge_config(section: EdgeSection) -> EdgeConfig:
    limits = {name: value for name, value in asdict(section).items() if name in EdgeLimits.__struct_fields__}
    return EdgeConfig(**limits, proxies=tuple(map(parse_contact, section.proxies)))


def _proxy_config(section: ProxySection) -> ProxyConfig:
    limits = {name: value for name, value in asdict(section).items() if name in ProxyLimits.__struct_fields__}
    return ProxyConfig(**limits, allow=tuple(map(parse_device, section.allow)))
