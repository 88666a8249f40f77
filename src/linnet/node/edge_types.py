"""What the control API says about the edge."""

from __future__ import annotations

from msgspec import Struct


class RefusalView(Struct, frozen=True):
    """A stream that a proxy does not serve us, and why."""

    stream: str
    reason: str


class EdgeProxyView(Struct, frozen=True):
    """One of our proxies. It knows our address, when we are there, and which streams we want."""

    proxy: str
    hints: tuple[str, ...]
    used: bool
    """Whether it is turned to now."""
    up: bool
    served: int
    """Streams that it serves us."""
    refusals: tuple[RefusalView, ...]
    kept_bytes: int
    """Bytes that it keeps of our streams."""
    most_bytes: int
    last_failure: str | None


class EdgeClientView(Struct, frozen=True):
    """A device that this node serves as its proxy."""

    client: str
    up: bool
    streams: tuple[str, ...]
    kept_bytes: int
    most_bytes: int
    last_here: float
    """Unix time."""


class EdgeReply(Struct, frozen=True):
    """The edge at this node."""

    edge: bool
    """Whether this node is on the edge: beyond local networks it has links to its proxies alone."""
    proxy: bool
    """Whether it is a proxy."""
    asleep: bool
    proxies: tuple[EdgeProxyView, ...]
    clients: tuple[EdgeClientView, ...]
