"""The configuration of the node machine: its identity, its links, and its parts."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from msgspec import Meta, Struct, field

from linnet.content.config import ContentConfig, FastConfig
from linnet.core.ids import AuthorId, Contact, PeerId, TopicId
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.context import Context
from linnet.edge.config import EdgeConfig, PresenceConfig, ProxyConfig
from linnet.identity.cards import Card
from linnet.identity.keys import SigningKey
from linnet.machine.outbox import Outbox
from linnet.machine.protocol import Protocol
from linnet.names.config import NamesConfig
from linnet.overlay.config import DEFAULT_DEGREE, MemberConfig, Overlay, TrackerConfig
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.kademlia.config import KademliaConfig
from linnet.overlay.part import Overlays
from linnet.overlay.tracker_choice import TrackerChoice
from linnet.overlay.tracker_client import TopicOptions
from linnet.places.config import PlacesConfig
from linnet.rooms.config import RelayConfig, RoomsConfig
from linnet.streams.config import StorageRule, StreamOptions


class Identity(Struct, frozen=True):
    """A device and the card that names its person."""

    device: SigningKey
    card: Card

    @property
    def peer(self) -> PeerId:
        """The key by which links are authenticated."""
        return PeerId(self.device.public)

    @property
    def author(self) -> AuthorId:
        """The person who signs with this device."""
        return self.card.person


class LinkConfig(Struct, frozen=True):
    """The settings of links (`linnet.peer.links`)."""

    ping_period: float = 15.0
    """Seconds between pings on a link."""
    ping_timeout: float = 5.0
    """Seconds until another ping is sent in place of an unanswered one."""
    ping_tries: int = 3
    """Pings without an answer after which the peer counts as gone; one may be lost, or the peer busy."""
    idle_timeout: float = 30.0
    """Seconds for which a link that neither end needs is kept open."""
    backoff_first: float = 0.25
    """Seconds until a peer that we need is dialled a second time."""
    backoff_most: float = 30.0
    """The most seconds between dials of a peer that we need: the pause doubles up to this, with jitter."""
    dials: Annotated[int, Meta(ge=1)] = 10
    """The most dials of one peer in a minute while it does not answer."""
    max_links: int = 4096
    """The most links that may be open at once."""
    control_rate: float = 500.0
    """Control messages per second that one peer may send over a long time; bursts of ten seconds' worth are
    allowed."""
    offences: int = 16
    """Forged or malformed messages that a link survives within a minute."""


class Surroundings(NamedTuple):
    """What a node offers to the part of a protocol that a program adds."""

    context: Context
    out: Outbox
    overlays: Overlays
    trackers: TrackerChoice
    overlay: Overlay
    """The overlay of topics for which no other is configured."""

    def join(self, topic: TopicId, now: float) -> None:
        """Join a topic: `NeighborUp` and `NeighborDown` go to the part that owns the topic."""
        trackers = self.trackers.choose_trackers(topic)
        self.overlays.join(self.overlay, TopicOptions(topic, trackers, DEFAULT_DEGREE), now)

    def leave(self, topic: TopicId, now: float) -> None:
        """Leave a topic."""
        self.overlays.leave(topic, now)


class PeerConfig(Struct, frozen=True):
    """The configuration of the node machine."""

    listens: tuple[str, ...] = ()
    """The addresses at which this node believes it can be dialled."""
    trackers: tuple[Contact, ...] = ()
    """The tracker registry: all trackers of this network, in any order."""
    overlay: Overlay = Overlay.TRACKER
    """The overlay of topics for which no other is configured."""
    trackerless: TrackerlessConfig | None = None
    """How this node finds others without trackers; None: it does not, and ignores nodes that do."""
    bootstrap: tuple[Contact, ...] = ()
    """Nodes to contact first where there are no trackers."""
    is_tracker: bool = False
    storage: tuple[StorageRule, ...] = ()
    streams: dict[str, StreamOptions] = field(default_factory=dict)
    agent: str = "linnet"
    member: MemberConfig = MemberConfig()
    tracker: TrackerConfig = TrackerConfig()
    delivery: DeliveryConfig = DeliveryConfig()
    content: ContentConfig | None = None
    """The node's part in content, which needs the hash table; None: none."""
    fast: FastConfig = FastConfig()
    """How groups of publishers are served (`linnet.content.fast`)."""
    links: LinkConfig = LinkConfig()
    rooms: RoomsConfig = RoomsConfig()
    relay: RelayConfig | None = None
    """The settings of the relay role; None: this node is not a relay."""
    places: PlacesConfig = PlacesConfig()
    names: NamesConfig = NamesConfig()
    kademlia: KademliaConfig | None = None
    """The node's part in the hash table over the network; None: none."""
    kademlia_bootstrap: tuple[Contact, ...] = ()
    """Nodes of the hash table to contact first."""
    edge: EdgeConfig = EdgeConfig()
    """How this node uses its proxies, if it has any."""
    proxy: ProxyConfig | None = None
    """The settings of the proxy role; None: this node is not a proxy."""
    lan: PresenceConfig | None = None
    """How this node announces itself on local networks; None: it neither announces itself nor listens."""
    protocols: tuple[Protocol[Surroundings], ...] = ()
    """Protocols that a program adds to those that ship."""
