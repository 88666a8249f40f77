"""The event: one signed, content-addressed record for everything that is published.

An event is encoded as the msgpack array of its fields in a fixed order, and its id is the SHA-256
of a tag and these bytes. On a link and in the log it travels in a *unit*: the fields that a chain
shares (topic, author, device, first seq and prev) once, one *tail* per event, and one signature
over the id of the last. A unit of one tail is a single event; more are a burst, which only streams
use. Each event's id covers its predecessor's, so the one signature covers them all
(docs/adr/0003-events-and-bursts.md).
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from linnet.core.ids import (
    AuthorId,
    Count,
    DeviceId,
    EventId,
    TopicId,
    WireAuthorId,
    WireDeviceId,
    WireEventId,
    WireSignature,
    WireTopicId,
)
from linnet.core.limits import (
    BODY_BYTES,
    BURST_EVENTS,
    CLEAR_BYTES,
    DEPENDENCIES,
    EVENT_BYTES,
    KEY_CHARS,
    KIND_CHARS,
)

References = Annotated[tuple[WireEventId, ...], Meta(min_length=1, max_length=DEPENDENCIES)]
MESSAGE = "message"
"""The kind of an application's message."""


class Tail(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The fields of an event that do not follow from its chain. An absent one costs one byte."""

    deps: References | None
    """Direct causal dependencies."""
    concurrent: References | None
    """Known heads that are not dependencies."""
    height: Count | None
    """1 + the largest height among both: the sort key of reconciliation."""
    control: References | None
    """Rooms: the heads of the control DAG that the author knew."""
    kind: Annotated[str, Meta(min_length=1, max_length=KIND_CHARS)]
    key: Annotated[str, Meta(max_length=KEY_CHARS)] | None
    """Present if the event sets state."""
    time: Count
    """The author's clock in milliseconds; advisory only."""
    clear: Annotated[bytes, Meta(max_length=CLEAR_BYTES)] | None
    """The few bytes that carriers must read."""
    body: Annotated[bytes, Meta(max_length=BODY_BYTES)]


class Spot(Struct, frozen=True, gc=False):
    """The place of an event or a unit: all of its fields but the tails."""

    topic: TopicId
    author: AuthorId
    device: DeviceId
    seq: int | None
    """The sequence number of its first event; None where a topic has no chains."""
    prev: EventId | None
    """The event before its first; None at the beginning of a chain."""


class Unverified(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A unit as it was received: do not trust any of it before `linnet.event.signing.verify_unit`."""

    topic: WireTopicId
    author: WireAuthorId
    device: WireDeviceId
    seq: Count | None
    """The sequence number of its first event; absent where a topic has no chains."""
    prev: WireEventId | None
    """The event before its first; absent at the beginning of a chain."""
    tails: Annotated[
        tuple[Annotated[bytes, Meta(min_length=10, max_length=EVENT_BYTES)], ...],
        Meta(min_length=1, max_length=BURST_EVENTS),
    ]
    sig: WireSignature
    """The device's signature over the id of the last event."""

    @property
    def last(self) -> int | None:
        """Sequence number of its last event."""
        return None if self.seq is None else self.seq + len(self.tails) - 1


class Event(Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """An event whose signature, id and limits were checked."""

    id: EventId
    topic: TopicId
    author: AuthorId
    device: DeviceId
    seq: int | None
    prev: EventId | None
    tail: Tail
    doubtful: bool = False
    """Whether this node doubts its time (`linnet.event.times`). It is no part of the event."""

    @property
    def kind(self) -> str:
        """The kind of the event, such as `MESSAGE`."""
        return self.tail.kind

    @property
    def body(self) -> bytes:
        """The content of the event."""
        return self.tail.body

    @property
    def time(self) -> int:
        """The author's clock in milliseconds; advisory, and `doubtful` where it cannot be right."""
        return self.tail.time


class Verified(Struct, frozen=True, gc=False):
    """A unit that was checked whole, with its events in the order of their chain."""

    unit: Unverified
    """The unit to pass on: the bytes that came, never a re-encoding."""
    events: tuple[Event, ...]

    @property
    def head(self) -> EventId:
        """The id of its last event."""
        return self.events[-1].id


_TAG = b"linnet/sealed/1"
_encode = msgspec.msgpack.Encoder().encode


def bound(spot: Spot | Event, tail: Tail) -> bytes:
    """Return the associated data of an event: all of its fields but the body, in their encoded order."""
    where = (spot.topic, spot.author, spot.device, spot.seq, spot.prev)
    return _TAG + _encode((*where, replace(tail, body=b"")))


def bound_of(event: Event) -> bytes:
    """Return the associated data of a finished event."""
    return bound(event, event.tail)
