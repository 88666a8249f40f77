"""The parts of a node, made from its configuration and given to each other."""

from __future__ import annotations

from collections.abc import Container, Iterator
from random import Random

from linnet.content.part import ABSENT, UNFOUND, Content, Search, TableDirectory
from linnet.core.ids import Contact, PeerId
from linnet.core.luck import Entropy
from linnet.core.stores import Store
from linnet.delivery.context import Context
from linnet.event.signing import Verifier
from linnet.identity.cards import CardCheck
from linnet.machine.outbox import Outbox
from linnet.machine.part import Part
from linnet.machine.router import Router
from linnet.names.names import Names
from linnet.overlay.adjacency import Adjacency
from linnet.overlay.kademlia.kademlia import Kademlia
from linnet.overlay.member import Member
from linnet.overlay.overlays import OVERLAP, Overlays
from linnet.overlay.registry import Registry
from linnet.overlay.tracker import Tracker
from linnet.overlay.trackerless.config import TrackerlessConfig
from linnet.overlay.trackerless.trackerless import Trackerless
from linnet.peer.account import Account
from linnet.peer.config import Identity, PeerConfig
from linnet.peer.edge import Edge, edge_delivery, only_links
from linnet.peer.links import Links
from linnet.peer.local_networks import LocalNetworks
from linnet.peer.neighborhood import Neighborhood
from linnet.peer.whereabouts import AddressBook, Company
from linnet.places.config import KeeperConfig
from linnet.places.part import Places
from linnet.rooms.config import RelayPolicy
from linnet.rooms.relay.relay import Relay
from linnet.rooms.room_setup import Setting
from linnet.rooms.rooms import Rooms
from linnet.streams.part import Streams


class Parts:
    """One part for each protocol, and the router between them."""

    def __init__(
        self,
        config: PeerConfig,
        identity: Identity,
        store: Store,
        rng: Random,
        verifier: Verifier,
        card_check: CardCheck,
        entropy: Entropy | None,
        search: Search | None = None,
    ) -> None:
        self.context = Context(
            identity.device, identity.card, store, edge_delivery(config), rng, verifier, card_check, entropy
        )
        self.out = Outbox()
        self.links = Links(identity.peer, config.links, rng, self.out, store.cells)
        adjacency = Adjacency(self.out)
        self.member = Member(config.member, self.out, adjacency, config.listens)
        self.tracker = Tracker(config.tracker, rng, self.out) if config.is_tracker else None
        """None: this node is no tracker."""
        self.trackerless = _without_trackers(config, identity, self.context, self.out, adjacency)
        """None: this node is in no overlay without trackers."""
        self.account = Account(self.trackerless, store.cells, self.out)
        overlap = OVERLAP if config.trackerless is None else config.trackerless.overlap
        self.overlays = Overlays(self.member, adjacency, self.out, self.trackerless, overlap)
        self.streams = Streams(
            self.context,
            self.out,
            self.overlays,
            Registry(config.trackers),
            config.streams,
            config.storage,
            config.overlay,
        )
        self.relay = _relay(config, self.context, self.out)
        """None: this node is no relay."""
        self.rooms = _rooms(config, self.context, self.overlays, self.relay, self.links.blocked, self.out)
        self.places = Places(self.context, config.places, self.out, _keeper(config))
        self.names = Names(self.context, config.names, self.out, in_network=config.kademlia is not None)
        self.kademlia = _kademlia(config, identity, self.context, self.out)
        """None: this node takes no part in the hash table over the network."""
        self.content = _content(config, self.context, self.kademlia, self.out, search)
        """None: this node takes no part in content."""
        is_found = search is not None or self.kademlia is not None
        self.content_refusal = ABSENT if is_found else UNFOUND
        """What is answered to commands of content where it takes no part."""
        self.edge = Edge(config, store, self.streams, self.links, self.out)
        adjacency.is_left_out = self.edge.is_ours
        self._is_edge = bool(config.edge.proxies)
        self.whereabouts = AddressBook(
            identity.device, config.listens, store.cells, self.out, self.company, self.account.budget.located
        )
        self.links.located = self.whereabouts.located
        self.local = LocalNetworks(config.lan, self.context, self.out, self.account.budget.announced)
        self.around = Neighborhood(self.links, self.overlays, self.rooms, self.local, self.edge)
        self._bootstrap = config.bootstrap
        self.router = Router(self.out, self.routed)

    @property
    def routed(self) -> tuple[Part, ...]:
        """Those that hear by the marks on their handlers, in the order in which they hear of links."""
        hash_table = () if self.kademlia is None else (self.kademlia,)
        rings = () if self.trackerless is None else (self.trackerless,)
        tracker = () if self.tracker is None else (self.tracker,)
        overlays = (self.member, *rings, self.overlays, *tracker)
        relay = () if self.relay is None else (self.relay,)
        content = () if self.content is None else self.content.parts
        first = (self.links, self.streams, self.rooms, self.rooms.desk, *relay, self.places)
        then = (self.whereabouts, self.names, *hash_table, *content)
        return (*first, *then, *overlays, self.account, self.local, self.edge, self.around)

    def start(self, now: float) -> None:
        """Start every part, each after those that it needs."""
        self.overlays.begin(self._bootstrap, now)
        self.around.start(now)
        self.edge.start(now)
        self.router.pass_on_notices(now)  # streams are kept for clients before others are joined
        self.streams.start(now)
        self.rooms.start(now)
        self.places.start(now)
        if self.kademlia is not None:
            self.kademlia.start(now)
        self.names.start(now)
        if self.content is not None:
            self.content.start(now)
        self.router.pass_on_notices(now)
        self.whereabouts.start(now)

    def stop(self, now: float) -> None:
        """Stop every part; those that others speak through go first."""
        for part in (self.overlays, self.account, self.edge, self.streams, self.rooms, self.places):
            part.stop(now)

    def company(self) -> Iterator[Company]:
        """Who shares a room, a place or a stream with this node; on the edge nobody is told of."""
        if self._is_edge:
            return
        for topic, here, known in self.rooms.company():
            yield Company(topic, here, known)
        for topic, here, known in self.places.company():
            yield Company(topic, here, known, moved_only=True)
        for topic, here in self.streams.company():
            yield Company(topic, here, moved_only=True, unless_moved=False)


def _keeper(config: PeerConfig) -> KeeperConfig | None:
    """A relay keeps places by the rules by which it serves rooms."""
    relay = config.relay
    if relay is None:
        return None
    allow = None if relay.policy is RelayPolicy.OPEN else relay.allow
    return KeeperConfig(allow, relay.max_rooms, relay.room_bytes, relay.total_bytes, relay.max_lifetime)


def _without_trackers(
    config: PeerConfig, identity: Identity, context: Context, out: Outbox, adjacency: Adjacency
) -> Trackerless | None:
    # A node on the edge finds those who are on its local networks, and nobody else, without trackers.
    is_local = config.lan is not None and bool(config.edge.proxies)
    chosen = config.trackerless or (TrackerlessConfig() if is_local else None)
    if chosen is None:
        return None
    device, cells, rng, entropy = identity.device, context.store.cells, context.rng, context.entropy
    return Trackerless(device, chosen, cells, rng, entropy, out, adjacency, config.listens)


def _kademlia(config: PeerConfig, identity: Identity, context: Context, out: Outbox) -> Kademlia | None:
    if config.kademlia is None:
        return None
    own = Contact(identity.peer, config.listens)
    cells, rng = context.store.cells, context.rng
    return Kademlia(own, config.kademlia, cells, rng, out, config.kademlia_bootstrap)


def _content(
    config: PeerConfig, context: Context, kademlia: Kademlia | None, out: Outbox, search: Search | None
) -> Content | None:
    known = search if search is not None else None if kademlia is None else TableDirectory(kademlia)
    if config.content is None or known is None:
        return None
    return Content(context, config.content, config.fast, config.listens, known, out, search)


def _relay(config: PeerConfig, context: Context, out: Outbox) -> Relay | None:
    if config.relay is None:
        return None
    return Relay(context, config.relay, config.rooms, context.entropy, out)


def _rooms(
    config: PeerConfig,
    context: Context,
    overlays: Overlays,
    relay: Relay | None,
    blocked: Container[PeerId],
    out: Outbox,
) -> Rooms:
    setting = Setting(
        context,
        config.rooms,
        out,
        overlays,
        config.trackers,
        config.listens,
        config.overlay,
        only_links(config),
    )
    return Rooms(setting, relay, blocked)
