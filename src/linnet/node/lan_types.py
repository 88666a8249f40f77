"""What the control API is asked about local networks and what it answers."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

NetworkName = Annotated[
    str, Meta(pattern="^[0-9a-f]{64}$", max_length=64, description="what a network is called here")
]


class AllowOnLanRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether a topic may be spoken of on a network."""

    topic: Annotated[str, Meta(min_length=1, max_length=128, description="the topic's id, `lt1…`")]
    allowed: bool
    network: NetworkName | None = None
    """None: the one that this device is on."""


class LanPeerView(Struct, frozen=True):
    """A device on a local network."""

    device: str
    hints: tuple[str, ...]


class LanNetworkView(Struct, frozen=True):
    """One local network."""

    network: str
    name: str
    here: bool
    """Whether this device is on it now."""
    announced: bool
    """Whether this device shows itself there."""
    topics: tuple[str, ...]
    """What is allowed there."""
    heard: int
    """Nodes that announce themselves there, met or not."""
    peers: tuple[LanPeerView, ...]


class LanReply(Struct, frozen=True):
    """The local networks that this device is on, or that something is allowed on."""

    enabled: bool
    networks: tuple[LanNetworkView, ...]
