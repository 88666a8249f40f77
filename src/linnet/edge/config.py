"""Parameters of presence on local networks."""

from __future__ import annotations

from msgspec import Struct


class PresenceConfig(Struct, frozen=True):
    """How a node shows itself on local networks, and how much it listens to."""

    period: float = 5.0
    """Seconds between announcements, give or take a fifth."""
    expiry: float = 20.0
    """Seconds without an announcement after which a node is gone: four may be lost in a row."""
    doubt: float = 15.0
    """Seconds of silence after which a node that was met is looked for by dialling it: many networks lose
    multicast and nothing else."""
    rate: float = 5.0
    """Announcements a second that are taken from one address for long."""
    burst: float = 25.0
    """Announcements of one address that are taken at once."""
    total_rate: float = 500.0
    """Announcements a second that are looked at on one network, whatever addresses they claim."""
    entries: int = 512
    """Nodes of one network that are known at once."""
    source_entries: int = 64
    """Nodes at one address."""
    sources: int = 1024
    """Addresses whose rate is remembered."""
    networks: int = 16
    """Networks that a device is on at once; more are left alone."""
    meetings: int = 16
    """Meetings under way at once."""
    patience: float = 2.0
    """Seconds after which the larger of two keys, which should be met, meets the other itself."""
    retry: float = 5.0
    """Seconds until a meeting that failed is tried again; doubled each time."""
    retry_most: float = 60.0
    replies: float = 10.0
    """Announcements out of turn, for those who are new here, that may be made at once."""
    reply_pause: float = 1.0
    """Seconds between announcements, at least."""
