"""Who a node is and what it does: all that the node machine is told at its start."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, field

from linnet.content.config import ContentConfig
from linnet.content.fast.config import FastConfig
from linnet.core.ids import AuthorId, Contact, PeerId
from linnet.delivery.config import DeliveryConfig
from linnet.edge.config import PresenceConfig
from linnet.edge.proxy_config import EdgeConfig, ProxyConfig
from linnet.identity.cards import Card
from linnet.identity.keys import SigningKey
from linnet.names.config import NamesConfig
from linnet.overlay.config import MemberConfig, Overlay, TrackerConfig
from linnet.overlay.kademlia.config import KademliaConfig
from linnet.overlay.trackerless.config import TrackerlessConfig
from linnet.places.config import PlacesConfig
from linnet.rooms.config import RelayConfig, RoomsConfig
from linnet.streams.options import StorageRule, StreamOptions


class Identity(Struct, frozen=True):
    """A device and the card that says whose it is."""

    device: SigningKey
    card: Card

    @property
    def peer(self) -> PeerId:
        """The key that links are authenticated to."""
        return PeerId(self.device.public)

    @property
    def author(self) -> AuthorId:
        """The person who signs with this device."""
        return self.card.person


class LinkConfig(Struct, frozen=True):
    """How links are kept (`linnet.peer.links`)."""

    ping_period: float = 15.0
    """Seconds between pings on a link."""
    ping_timeout: float = 5.0
    """Seconds until an unanswered ping is sent again."""
    ping_tries: int = 3
    """Pings without an answer that mean that the peer is gone; one may be lost, or its node busy."""
    idle_timeout: float = 30.0
    """Seconds that a link which neither end needs is kept."""
    backoff_first: float = 0.25
    """Seconds until a peer that we need is dialled a second time."""
    backoff_most: float = 30.0
    """Seconds between dials of a peer that we need, at most: doubling up to this, with jitter."""
    dials: Annotated[int, Meta(ge=1)] = 10
    """Dials of one peer in a minute, at most, while it does not answer."""
    max_links: int = 4096
    """Links that may be open at once."""
    control_rate: float = 500.0
    """Control messages a second that one peer may send for long; a burst of ten seconds' worth passes."""
    offences: int = 16
    """Forged or malformed things that one link survives within a minute."""


class PeerConfig(Struct, frozen=True):
    """What the node machine is told."""

    listens: tuple[str, ...] = ()
    """Where this node may be dialled, as it believes."""
    trackers: tuple[Contact, ...] = ()
    """The tracker registry: all trackers of this network, in any order."""
    overlay: Overlay = Overlay.TRACKER
    """The overlay of topics of which nothing else is said."""
    trackerless: TrackerlessConfig | None = None
    """How this node finds others without trackers; None: it does not, and answers nobody who does."""
    bootstrap: tuple[Contact, ...] = ()
    """Nodes to begin with where there are no trackers."""
    is_tracker: bool = False
    storage: tuple[StorageRule, ...] = ()
    streams: dict[str, StreamOptions] = field(default_factory=dict)
    agent: str = "linnet"
    member: MemberConfig = MemberConfig()
    tracker: TrackerConfig = TrackerConfig()
    delivery: DeliveryConfig = DeliveryConfig()
    content: ContentConfig | None = None
    """How this node takes part in content, which needs the hash table; None: it does not."""
    fast: FastConfig = FastConfig()
    """How groups of a publisher are served (`linnet.content.fast`)."""
    links: LinkConfig = LinkConfig()
    rooms: RoomsConfig = RoomsConfig()
    relay: RelayConfig | None = None
    """How this node is a relay; None: it is none."""
    places: PlacesConfig = PlacesConfig()
    names: NamesConfig = NamesConfig()
    kademlia: KademliaConfig | None = None
    """How this node takes part in the hash table over the network; None: it does not."""
    kademlia_bootstrap: tuple[Contact, ...] = ()
    """Nodes of it to begin with."""
    edge: EdgeConfig = EdgeConfig()
    """How this node takes part through proxies, if it has any."""
    proxy: ProxyConfig | None = None
    """How this node is a proxy; None: it is none."""
    lan: PresenceConfig | None = None
    """How this node shows itself on local networks; None: it does not, and does not listen."""
