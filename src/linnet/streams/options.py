"""How a node takes part in a stream: what it keeps, and how it joins."""

from __future__ import annotations

from msgspec import Struct

from linnet.core.ids import Contact
from linnet.overlay.config import DEFAULT_DEGREE, Overlay


class StorageRule(Struct, frozen=True):
    """A stream that this node keeps for others, and for how long."""

    stream: str
    retention: float | None = None
    """Seconds that events are kept; None: for good."""
    quota: int | None = None
    """Bytes that the stream may take; None: no bound."""


class StreamOptions(Struct, frozen=True):
    """How this node joins a stream that has no policy of its owner."""

    degree: int = DEFAULT_DEGREE
    """Links that the tracker is asked to give a node in this stream."""
    near: bool = False
    """Whether half of them should be near ones."""
    trackers: tuple[Contact, ...] = ()
    """In order of preference, instead of those that hashing gives."""
    overlay: Overlay | None = None
    """Who says who the neighbours are; None: as the node does by default."""
