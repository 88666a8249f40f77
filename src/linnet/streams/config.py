"""The configuration of streams: which of them a node keeps, and how it joins them."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from linnet.core.ids import Contact
from linnet.overlay.config import DEFAULT_DEGREE, Overlay


class StorageRule(Struct, frozen=True):
    """A stream that this node keeps for others, and its limits."""

    stream: str
    retention: float | None = None
    """Seconds for which events are kept; None: forever."""
    quota: int | None = None
    """Bytes that the stream may take; None: what the configuration of delivery allows any stream."""


class StreamOptions(Struct, frozen=True):
    """How this node joins a stream whose owner has set no policy."""

    degree: int = DEFAULT_DEGREE
    """The number of links that the tracker is asked to give a node in this stream."""
    near: bool = False
    """Whether half of these links should be to near nodes."""
    trackers: tuple[Contact, ...] = ()
    """Trackers in order of preference, instead of those chosen by hashing."""
    overlay: Overlay | None = None
    """What chooses the neighbours; None: the default of the node."""
    storage: tuple[Contact, ...] = ()
    """The storage nodes that count. Without any, all that offer to keep the stream are asked: volunteers."""


class StreamsConfig(Struct, frozen=True):
    """The configuration of a node's streams."""

    options: Mapping[str, StreamOptions] = {}
    """Options by the name of the stream; other streams use the defaults."""
    rules: tuple[StorageRule, ...] = ()
    overlay: Overlay = Overlay.TRACKER
    """What chooses the neighbours in a stream, unless its options say otherwise."""
