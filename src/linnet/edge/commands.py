"""What the local application asks about local networks, and what it is answered."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from linnet.core.ids import Contact, TopicId


class AllowOnNetwork(Struct, frozen=True, gc=False):
    """Let a topic be spoken of on a network, or not. Answered by `Done`."""

    topic: TopicId
    network: bytes
    is_allowed: bool


class ExamineLan(Struct, frozen=True, gc=False):
    """Tell of the networks that we are on, or that something is allowed on. Answered by `LanStatus`."""


class NetworkStatus(Struct, frozen=True, gc=False):
    """One network."""

    network: bytes
    name: str
    is_here: bool
    """Whether this device is on it now."""
    is_announced: bool
    """Whether this device shows itself there: it does where a topic is allowed."""
    topics: tuple[TopicId, ...]
    """What is allowed there."""
    heard: int
    """Nodes that announce themselves there, met or not."""
    peers: tuple[Contact, ...]
    """Those that were met."""


class LanStatus(Struct, frozen=True, gc=False):
    """How things stand on local networks."""

    networks: tuple[NetworkStatus, ...]
    is_enabled: bool = True
    """Whether this node listens to local networks at all."""


LanCommand: TypeAlias = AllowOnNetwork | ExamineLan
