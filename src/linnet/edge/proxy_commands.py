"""What the application asks a node on the edge or a proxy, and what it is answered."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from linnet.core.ids import PeerId
from linnet.core.reasons import Reason


class Sleep(Struct, frozen=True, gc=False):
    """Let go of all links until `Wake`. Answered by `Done`."""


class Wake(Struct, frozen=True, gc=False):
    """Turn to the proxies again. Answered by `Done`."""


class ExamineEdge(Struct, frozen=True, gc=False):
    """Tell how the edge stands. Answered by `EdgeStatus`."""


class ProxyStatus(Struct, frozen=True, gc=False):
    """One of our proxies."""

    peer: PeerId
    hints: tuple[str, ...]
    used: bool
    """Whether a link to it is wanted now."""
    up: bool
    served: int
    """Streams that it serves us."""
    refusals: tuple[tuple[str, Reason], ...]
    """Streams that it does not serve us, and why."""
    kept_bytes: int
    most_bytes: int
    last_failure: Reason | None


class ClientStatus(Struct, frozen=True, gc=False):
    """One of those whom this node serves as their proxy."""

    peer: PeerId
    up: bool
    streams: tuple[str, ...]
    kept_bytes: int
    most_bytes: int
    last_here: float


class EdgeStatus(Struct, frozen=True, gc=False):
    """How the edge stands at this node."""

    is_edge: bool
    """Whether this node is on the edge: beyond local networks it has links to its proxies alone."""
    is_proxy: bool
    asleep: bool
    proxies: tuple[ProxyStatus, ...]
    clients: tuple[ClientStatus, ...]


ProxyCommand: TypeAlias = Sleep | Wake | ExamineEdge
