"""What the machines of the edge ask and tell; the notices of overlays are among it."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from linnet.core.effects import AfterCommit, CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.ids import PeerId, TopicId
from linnet.core.timers import Tick
from linnet.edge.messages import Serve, Served, Taken, Unserve
from linnet.overlay.notices import JoinRefused, NeighborDown, StorageKnown
from linnet.trace.records import Record


class Reached(Struct, frozen=True, gc=False):
    """A proxy serves this topic, or a client is served in it: the two are neighbours now."""

    topic: TopicId
    peer: PeerId
    same: bool
    """Whether both know the same already, so that nothing has to be said."""


class Keep(Struct, frozen=True, gc=False):
    """Take part in this stream and keep it for others, from now on."""

    stream: str
    retention: float
    """Seconds."""
    quota: int
    """Bytes."""


class LetGo(Struct, frozen=True, gc=False):
    """Keep this stream no longer."""

    stream: str


class Trim(Struct, frozen=True, gc=False):
    """Remove the oldest of a stream until it takes no more than so many bytes."""

    topic: TopicId
    most: int


ClientEffect: TypeAlias = (
    Send[Serve | Unserve]
    | AfterCommit[Send[Taken]]
    | Hold
    | Release
    | SetTimer[Tick]
    | CancelTimer[Tick]
    | Record
    | Reached
    | NeighborDown
    | StorageKnown
    | JoinRefused
)
ProxyEffect: TypeAlias = (
    Send[Served]
    | AfterCommit[Send[Served]]
    | SetTimer[Tick]
    | Record
    | Reached
    | NeighborDown
    | Keep
    | LetGo
    | Trim
)
