"""Parameters of presence on local networks, of proxies, and of nodes that take part through proxies."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from linnet.core.ids import Contact, PeerId
from linnet.core.limits import MIB


class PresenceConfig(Struct, frozen=True):
    """How a node announces itself on local networks, and how many announcements it reads."""

    period: float = 5.0
    """Seconds between announcements, varied by a fifth."""
    expiry: float = 20.0
    """Seconds without an announcement after which a node counts as gone: four may be lost in a row."""
    doubt: float = 15.0
    """Seconds of silence after which a known node is dialled to find out whether it is still there: many
    networks lose multicast and nothing else."""
    rate: float = 5.0
    """Announcements per second that are accepted from one address over a long time."""
    burst: float = 25.0
    """Announcements from one address that are accepted at once."""
    total_rate: float = 500.0
    """Announcements per second that are read on one network, whatever addresses they claim."""
    entries: int = 512
    """The most nodes of one network that are known at once."""
    source_entries: int = 64
    """The most nodes at one address."""
    sources: int = 1024
    """The most addresses whose rate is remembered."""
    networks: int = 16
    """The most networks that a device is on at once; further ones are ignored."""
    meetings: int = 16
    """The most meetings in progress at once."""
    patience: float = 2.0
    """Seconds after which the node with the larger key, which should be met, meets the other itself."""
    retry: float = 5.0
    """Seconds until a failed meeting is tried again; doubled each time."""
    retry_most: float = 60.0
    replies: float = 10.0
    """Announcements out of turn, for nodes that are new here, that may be made at once."""
    reply_pause: float = 1.0
    """The least seconds between announcements."""


class ProxyLimits(Struct, frozen=True):
    """How much a proxy serves and keeps."""

    open: bool = False
    """Whether anyone may be a client, or only the devices that are listed."""
    clients: Annotated[int, Meta(ge=1)] = 256
    """The most devices that this proxy serves."""
    topics: Annotated[int, Meta(ge=1)] = 256
    """The most streams that it serves one of them."""
    bytes: Annotated[int, Meta(ge=0)] = 64 * MIB
    """Bytes of events kept for one client; beyond this the oldest are evicted, first those that it has
    taken."""
    days: Annotated[float, Meta(gt=0.0)] = 30.0
    """Days that an event is kept for a client, and that an absent client is still served."""
    look_period: Annotated[float, Meta(gt=0.0)] = 60.0
    """Seconds between reviews of kept events that are too many or too old."""


class ProxyConfig(ProxyLimits, frozen=True):
    """The proxy role."""

    allow: tuple[PeerId, ...] = ()
    """Devices that may be clients."""

    @property
    def retention(self) -> float:
        """Seconds that an event is kept."""
        return self.days * 86_400.0


class EdgeLimits(Struct, frozen=True):
    """How a node on the edge uses its proxies."""

    at_once: Annotated[int, Meta(ge=1, le=8)] = 1
    """Proxies used at the same time. With two, one that drops or delays events is noticed and made up for."""
    each: Annotated[int, Meta(ge=0, le=8)] = 0
    """How many of the used proxies each stream is requested from; 0: all of them. With fewer, streams are
    shared out, and no proxy knows all of them as long as the others are there."""
    failover_after: Annotated[float, Meta(gt=0.0)] = 3.0
    """Seconds without a link to a proxy after which the next one is used."""
    answer_timeout: Annotated[float, Meta(gt=0.0)] = 5.0
    """Seconds until a proxy that does not answer is asked again."""
    retry_period: Annotated[float, Meta(gt=0.0)] = 60.0
    """Seconds until a proxy that refused a stream is asked again."""
    taken_period: Annotated[float, Meta(gt=0.0)] = 15.0
    """Seconds between reports to the proxies of which events have arrived; where nothing has arrived for so
    long, they are asked once whether they know more."""
    battery: bool = False
    """Whether this node sleeps by itself: it closes its links, and opens them again from time to time."""
    awake: Annotated[float, Meta(gt=0.0)] = 15.0
    """Battery mode: seconds that the node stays awake once it has a proxy."""
    asleep: Annotated[float, Meta(gt=0.0)] = 900.0
    """Battery mode: seconds that the node sleeps."""


class EdgeConfig(EdgeLimits, frozen=True):
    """A node on the edge: beyond local networks it has links to its proxies alone."""

    proxies: tuple[Contact, ...] = ()
    """Proxies in order of preference; none: this node is not on the edge."""
