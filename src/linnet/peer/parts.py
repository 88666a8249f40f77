"""The parts of a node, built from its configuration and connected to each other.

This module also passes on what concerns several parts, and answers messages and commands for parts that this
node does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from random import Random
from typing import TypeAlias, get_args

from linnet.content.commands import ContentCommand
from linnet.content.fast.commands import FastCommand
from linnet.content.fast.messages import FastMessage
from linnet.content.messages import ContentMessage
from linnet.content.part import ABSENT, UNFOUND, Content, NodeFinder, TableDirectory
from linnet.core.ids import Contact, PeerId
from linnet.core.luck import Entropy
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.core.stores import Store
from linnet.delivery.commands import Consumed, Unsubscribe
from linnet.delivery.context import Context
from linnet.edge.notices import LanChange, LanChanged, LanPeer
from linnet.event.signing import Verifier
from linnet.identity.cards import CardCheck
from linnet.machine.outbox import Outbox
from linnet.machine.part import Part, on_notice
from linnet.machine.router import Router
from linnet.names.part import Names
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.gossip.messages import TrackerlessMessage
from linnet.overlay.gossip.part import GossipOverlay, rejected_of_proxy
from linnet.overlay.kademlia.messages import KademliaMessage
from linnet.overlay.kademlia.part import Kademlia
from linnet.overlay.messages import AskMembers, TrackerMessage
from linnet.overlay.notices import Adjacency
from linnet.overlay.part import OVERLAP, Overlays
from linnet.overlay.tracked_topic import Graph
from linnet.overlay.tracker import Tracker
from linnet.overlay.tracker_choice import TrackerChoice
from linnet.overlay.tracker_client import TrackerClient
from linnet.peer.account import Account
from linnet.peer.config import Identity, PeerConfig, Surroundings
from linnet.peer.edge import Edge, edge_delivery, only_links
from linnet.peer.interface import ContentStatus, HashTableStatus, NodeStatus
from linnet.peer.links import Links, RoundTripMeasured
from linnet.peer.local_networks import LocalNetworks
from linnet.peer.whereabouts import AddressBook, Company, Learned
from linnet.places.config import KeeperConfig
from linnet.places.part import Places
from linnet.rooms.config import RelayPolicy
from linnet.rooms.part import Rooms
from linnet.rooms.relay.relay import Relay
from linnet.rooms.room_setup import Setting
from linnet.streams.config import StreamsConfig
from linnet.streams.part import Streams
from linnet.trace.records import Kind, Record

_MET = 4096
"""Devices of local networks of which it is remembered where they were met."""


class Neighborhood(Part):
    """Passes on notices that concern several parts."""

    def __init__(
        self, links: Links, overlays: Overlays, rooms: Rooms, local: LocalNetworks, edge: Edge
    ) -> None:
        self._links = links
        self._overlays = overlays
        self._rooms = rooms
        self._local = local
        self._edge = edge
        self._met: dict[PeerId, dict[bytes, None]] = {}
        """On which networks devices were met, those that were met last."""
        self._allowed: tuple[bytes, ...] = ()
        """Local networks on which something is allowed."""

    def start(self, now: float) -> None:
        """Settle which topics may be spoken of on local networks and with proxies, at the start."""
        self._settle_local((), now)

    @on_notice(Learned)
    def try_address(self, notice: Learned, now: float) -> None:
        """Have a device dialled at once at its newly learned address, if any part needs it."""
        self._rooms.try_address(notice.topic, notice.contact, now)
        self._links.seek(notice.contact.peer, now)

    @on_notice(RoundTripMeasured)
    def note_round_trip(self, notice: RoundTripMeasured, now: float) -> None:
        """Note the round-trip time to a peer, by which relays and near neighbours are chosen."""
        self._rooms.note_rtt(notice.peer, notice.seconds)
        self._overlays.member.note_rtt(notice.peer, notice.seconds)

    # Local networks.

    @on_notice(LanChanged)
    def handle_lan_changes(self, notice: LanChanged, now: float) -> None:
        """Tell overlays without trackers which devices are on local networks now."""
        self._settle_local(notice.changes, now)

    def _settle_local(self, changes: tuple[LanChange, ...], now: float) -> None:
        self._edge.settle_local(changes, self._local, now)
        if self._edge.is_edge:
            self._rooms.settle_nearby(self._local.spoken, now)
        for change in changes:
            if self._edge.is_ours(change.peer):
                continue
            if isinstance(change, LanPeer):
                self._note_met(change)
                self._overlays.add_local(change.contact, self._local.allowed_with(change.peer), now)
            elif not self._local.is_here(change.peer):
                self._overlays.remove_local(change.peer, self._is_denied(change.peer), now)
        self._settle_denied(now)

    def _settle_denied(self, now: float) -> None:
        """Where nothing is allowed any more, those who were met there and left before are let go as well."""
        allowed = tuple(self._local.policy.networks)
        if allowed == self._allowed:
            return
        self._allowed = allowed
        for peer in [peer for peer in self._met if self._is_denied(peer) and not self._local.is_here(peer)]:
            del self._met[peer]
            self._overlays.remove_local(peer, True, now)

    def _note_met(self, change: LanPeer) -> None:
        networks = self._met.setdefault(change.peer, {})
        networks[change.network] = None
        if len(self._met) > _MET:
            del self._met[next(iter(self._met))]

    def _is_denied(self, peer: PeerId) -> bool:
        """Whether nothing may be spoken of on any network where a device was met."""
        return not any(self._local.policy.allowed_topics(each) for each in self._met.get(peer, ()))


class Parts:
    """The parts of all protocols of a node, and the router between them."""

    def __init__(
        self,
        config: PeerConfig,
        identity: Identity,
        store: Store,
        rng: Random,
        verifier: Verifier,
        card_check: CardCheck,
        entropy: Entropy | None,
        make_finder: Callable[[Outbox], NodeFinder] | None = None,
    ) -> None:
        self.context = Context(
            identity.device, identity.card, store, edge_delivery(config), rng, verifier, card_check, entropy
        )
        self.out = Outbox()
        self.links = Links(identity.peer, config.links, rng, self.out, store.cells)
        self.context.clock_behind = self.links.clocks.behind
        adjacency = Adjacency(self.out)
        self.member = TrackerClient(config.member, self.out, adjacency, config.listens)
        self.tracker = (
            Tracker(config.tracker, rng, self.out, self.context.origins) if config.is_tracker else None
        )
        """None: this node is not a tracker."""
        self.trackerless = _without_trackers(config, identity, self.context, self.out, adjacency)
        """None: this node is in no overlay without trackers."""
        self.account = Account(self.trackerless, store.cells, self.out)
        overlap = OVERLAP if config.trackerless is None else config.trackerless.overlap
        self.overlays = Overlays(self.member, adjacency, self.out, self.trackerless, overlap)
        trackers = TrackerChoice(config.trackers)
        self.streams = Streams(
            self.context,
            self.out,
            self.overlays,
            trackers,
            StreamsConfig(config.streams, config.storage, config.overlay),
        )
        rooms = _room_setting(config, self.context, self.overlays, self.out)
        self.relay = _relay(config, rooms)
        """None: this node is not a relay."""
        self.rooms = Rooms(rooms, self.relay, self.links.blocked)
        self.places = Places(self.context, config.places, self.out, _keeper(config))
        self.names = Names(self.context, config.names, self.out, in_network=config.kademlia is not None)
        self.kademlia = _kademlia(config, identity, self.context, self.out)
        """None: this node takes no part in the hash table over the network."""
        self._finder = None if make_finder is None else make_finder(self.out)
        self.content = _content(config, self.context, self._finder or self.kademlia, self.out)
        """None: this node takes no part in content."""
        is_found = self._finder is not None or self.kademlia is not None
        self.content_refusal = ABSENT if is_found else UNFOUND
        """The answer to content commands where the node takes no part in content."""
        around = Surroundings(self.context, self.out, self.overlays, trackers, config.overlay)
        self.added = tuple(each.make(around) for each in config.protocols if each.make is not None)
        """The parts of protocols that a program adds."""
        self.edge = Edge(config, store, self.streams, self.links, self.out, self.context.origins)
        adjacency.is_left_out = self.edge.is_ours
        self._is_edge = bool(config.edge.proxies)
        self.whereabouts = AddressBook(
            identity.device,
            config.listens,
            store.cells,
            self.out,
            self.company,
            self.account.budget.enter_address,
        )
        self.links.located = self.whereabouts.located
        self.local = LocalNetworks(config.lan, self.context, self.out, self.account.budget.enter_announcement)
        self.around = Neighborhood(self.links, self.overlays, self.rooms, self.local, self.edge)
        self._bootstrap = config.bootstrap
        self.router = Router(self.out, self.routed)

    @property
    def routed(self) -> tuple[Part, ...]:
        """The parts that receive inputs by their handlers' marks, in the order used for links."""
        hash_table = () if self.kademlia is None else (self.kademlia,)
        rings = () if self.trackerless is None else (self.trackerless,)
        tracker = () if self.tracker is None else (self.tracker,)
        overlays = (self.member, *rings, self.overlays, *tracker)
        relay = () if self.relay is None else (self.relay,)
        finder = () if self._finder is None else (self._finder,)
        content = () if self.content is None else self.content.parts
        first = (self.links, self.streams, *relay, *self.rooms.parts, self.places, *self.added)
        then = (self.whereabouts, self.names, *hash_table, *finder, *content)
        return (*first, *then, *overlays, self.account, self.local, *self.edge.parts, self.around)

    def start(self, now: float) -> None:
        """Start every part, after the parts that it needs."""
        self.overlays.begin(self._bootstrap, now)
        self.around.start(now)
        self.edge.start(now)
        self.router.pass_on_notices(now)  # streams are kept for clients before others are joined
        self.streams.start(now)
        self.rooms.start(now)
        if self.relay is not None:
            self.relay.start(now)
        self.places.start(now)
        if self.kademlia is not None:
            self.kademlia.start(now)
        self.names.start(now)
        if self.content is not None:
            self.content.start(now)
        for part in self.added:
            part.start(now)
        self.router.pass_on_notices(now)
        self.whereabouts.start(now)

    def stop(self, now: float) -> None:
        """Stop every part; those that send through others stop before them."""
        for part in (
            self.overlays,
            self.account,
            self.edge,
            self.streams,
            self.rooms,
            self.places,
            *self.added,
        ):
            part.stop(now)

    def company(self) -> Iterator[Company]:
        """Return who shares a room, a place or a stream with this node; nothing on the edge."""
        if self._is_edge:
            return
        for topic, here, known in self.rooms.company():
            yield Company(topic, here, known)
        for topic, here, known in self.places.company():
            yield Company(topic, here, known, moved_only=True)
        for topic, here in self.streams.company():
            yield Company(topic, here, moved_only=True, unless_moved=False)

    def status(self, config: PeerConfig, roles: tuple[str, ...], started_at: float) -> NodeStatus:
        """Describe the state of all parts."""
        tracked: tuple[Graph, ...] = ()
        if self.tracker is not None:
            graphs = map(self.tracker.describe_graph, self.tracker.topics)
            tracked = tuple(graph for graph in graphs if graph is not None)
        reachability = self.member.reachability
        return NodeStatus(
            self.context.peer,
            self.context.author,
            started_at,
            roles,
            config.listens,
            self.member.is_reachable,
            None if reachability is None else reachability.reason,
            tuple(self.links.blocked),
            self.links.status(),
            self.streams.status(),
            tracked,
            self.rooms.status(),
            _hash_table_status(self.kademlia),
            _content_status(self.content),
            self.links.clocks.ahead(),
            tuple(self.company()),
            self.links.unanswered(),
        )


def _keeper(config: PeerConfig) -> KeeperConfig | None:
    """Return the rules by which a relay keeps places: those by which it serves rooms."""
    relay = config.relay
    if relay is None:
        return None
    allow = None if relay.policy is RelayPolicy.OPEN else relay.allow
    return KeeperConfig(allow, relay.max_rooms, relay.room_bytes, relay.total_bytes, relay.max_lifetime)


def _without_trackers(
    config: PeerConfig, identity: Identity, context: Context, out: Outbox, adjacency: Adjacency
) -> GossipOverlay | None:
    # A node on the edge finds only devices on its local networks without trackers.
    is_local = config.lan is not None and bool(config.edge.proxies)
    chosen = config.trackerless or (TrackerlessConfig() if is_local else None)
    if chosen is None:
        return None
    device, cells, rng, entropy = identity.device, context.store.cells, context.rng, context.entropy
    is_edge = bool(config.edge.proxies)
    return GossipOverlay(
        device, chosen, cells, rng, entropy, out, adjacency, config.listens, only_local=is_edge
    )


def _kademlia(config: PeerConfig, identity: Identity, context: Context, out: Outbox) -> Kademlia | None:
    if config.kademlia is None:
        return None
    own = Contact(identity.peer, config.listens)
    cells, rng = context.store.cells, context.rng
    return Kademlia(own, config.kademlia, cells, rng, out, config.kademlia_bootstrap)


def _content(
    config: PeerConfig, context: Context, finder: Kademlia | NodeFinder | None, out: Outbox
) -> Content | None:
    if config.content is None or finder is None:
        return None
    known = TableDirectory(finder) if isinstance(finder, Kademlia) else finder
    return Content(context, config.content, config.fast, config.listens, known, out)


def _room_setting(config: PeerConfig, context: Context, overlays: Overlays, out: Outbox) -> Setting:
    only = only_links(config)
    trackers, listens = config.trackers, config.listens
    return Setting(context, config.rooms, out, overlays, trackers, listens, config.overlay, only)


def _relay(config: PeerConfig, rooms: Setting) -> Relay | None:
    if config.relay is None:
        return None
    return Relay(rooms.context, config.relay, config.rooms, rooms.out, rooms.is_kept_from)


def _hash_table_status(kademlia: Kademlia | None) -> HashTableStatus | None:
    if kademlia is None:
        return None
    return HashTableStatus(len(kademlia.table), len(kademlia.shelf), kademlia.placed_records)


def _content_status(content: Content | None) -> ContentStatus | None:
    if content is None:
        return None
    scout = content.scout
    held = tuple(sorted(scout.elections.held))
    return ContentStatus(scout.subscriptions, len(scout.table), held, scout.arrivals)


class Absent:
    """The messages and commands for which this node has no part, and the answers to them."""

    def __init__(self, parts: Parts) -> None:
        self._out: Outbox = parts.out
        self._is_proxy = parts.edge.is_ours
        self.messages = _rejects_without(
            *(part is not None for part in (parts.content, parts.kademlia, parts.tracker, parts.trackerless))
        )
        self.commands = _refusals("" if parts.content is not None else parts.content_refusal)
        """The reason for which each command is declined."""

    def _reject_content(self, peer: PeerId, message: Message) -> None:
        self._reject(peer, message, "this node does not take part in content")

    def _reject_kademlia(self, peer: PeerId, message: Message) -> None:
        self._reject(peer, message, "this node takes no part in the hash table")

    def _ignore_join(self, peer: PeerId, message: Message) -> None:
        """Ignore a request for neighbours: the sender does not know yet that this node is no tracker."""

    def _ignore_gossip(self, peer: PeerId, message: Message) -> None:
        """Ignore gossip, which others may send; record it if it comes from a proxy."""
        if self._is_proxy(peer):
            self._out.record(rejected_of_proxy(peer, message))

    def _reject(self, peer: PeerId, message: Message, why: str) -> None:
        note = f"{type(message).__name__}: {why}"
        self._out.record(Record(Kind.REJECTED, peer=peer, reason=Reason.UNSUPPORTED, note=note))


def members(union: object) -> Iterator[type]:
    """Yield the types of a union, also those of unions in it."""
    for kind in get_args(union) or (union,):
        if isinstance(kind, type):
            yield kind
        else:
            yield from members(kind)


Reject: TypeAlias = Callable[[Absent, PeerId, Message], None]


@cache
def _rejects_without(content: bool, kademlia: bool, tracker: bool, trackerless: bool) -> dict[type, Reject]:
    """Return who answers messages to parts that are not there; nodes that lack the same ones share it."""
    rejects: dict[type, Reject] = {}
    for is_there, unions, reject in (
        (content, (ContentMessage, FastMessage), Absent._reject_content),
        (kademlia, (KademliaMessage,), Absent._reject_kademlia),
        (tracker, (TrackerMessage, AskMembers), Absent._ignore_join),
        (trackerless, (TrackerlessMessage,), Absent._ignore_gossip),
    ):
        if not is_there:
            rejects |= {kind: reject for union in unions for kind in members(union)}
    return rejects


@cache
def _refusals(why: str) -> dict[type, str]:
    """Return the commands to content with the reason why they are declined; none if there is no reason."""
    commands = {*members(ContentCommand), *members(FastCommand)} - {Consumed, Unsubscribe}
    return dict.fromkeys(commands, why) if why else {}
