"""Parameters of proxies and of the nodes that take part through them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from linnet.core.ids import Contact, PeerId
from linnet.core.limits import MIB


class ProxyLimits(Struct, frozen=True):
    """What a proxy takes and keeps."""

    open: bool = False
    """Whether anyone may be a client, or only the devices that are listed."""
    clients: Annotated[int, Meta(ge=1)] = 256
    """Devices that this proxy serves at most."""
    topics: Annotated[int, Meta(ge=1)] = 256
    """Streams that it serves one of them at most."""
    bytes: Annotated[int, Meta(ge=0)] = 64 * MIB
    """Bytes of events kept for one client; past this the oldest go, first of what it has taken."""
    days: Annotated[float, Meta(gt=0.0)] = 30.0
    """Days that an event is kept for a client, and that a client which does not come back is served."""
    look_period: Annotated[float, Meta(gt=0.0)] = 60.0
    """Seconds between looks for what is too much or too old."""


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
    """Proxies used at the same time. With two, one that drops or delays is noticed and made up for."""
    each: Annotated[int, Meta(ge=0, le=8)] = 0
    """Proxies that each stream is asked of, out of those that are used; 0: all of them. With fewer, streams
    are shared out, and no proxy knows of all of them as long as the others are there."""
    failover_after: Annotated[float, Meta(gt=0.0)] = 3.0
    """Seconds without a link to a proxy until the next one is turned to."""
    answer_timeout: Annotated[float, Meta(gt=0.0)] = 5.0
    """Seconds until a proxy that does not answer is asked again."""
    retry_period: Annotated[float, Meta(gt=0.0)] = 60.0
    """Seconds until a proxy that refused a stream is asked again."""
    taken_period: Annotated[float, Meta(gt=0.0)] = 15.0
    """Seconds between words to the proxies of what has arrived; where nothing has for so long, they are asked
    once whether they know of more."""
    battery: bool = False
    """Whether this node sleeps by itself: links are let go, and opened again every so often."""
    awake: Annotated[float, Meta(gt=0.0)] = 15.0
    """Battery mode: seconds that the node stays awake once it has a proxy."""
    asleep: Annotated[float, Meta(gt=0.0)] = 900.0
    """Battery mode: seconds that it sleeps."""


class EdgeConfig(EdgeLimits, frozen=True):
    """A node on the edge: beyond local networks it has links to its proxies alone."""

    proxies: tuple[Contact, ...] = ()
    """In order of preference; none: this node is none on the edge."""
