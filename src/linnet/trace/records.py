"""The trace: one closed, versioned set of records, written alike by node and simulator, and its sinks.

A machine returns records among its effects; the driver adds time, node and counter. `SCHEMA` is
the contract with every reader.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, Protocol

from msgspec import Struct

from linnet.core.ids import DeviceId, EventId, PeerId, TopicId
from linnet.core.reasons import Reason

SCHEMA_VERSION = 1


class Kind(StrEnum):
    """The kind of a record. The list is closed; a new kind needs a new `SCHEMA_VERSION`."""

    PUBLISHED = "published"
    SENT = "sent"
    RECEIVED = "received"
    DELIVERED = "delivered"
    DUPLICATE = "duplicate"
    REJECTED = "rejected"
    DROPPED = "dropped"
    EXPIRED = "expired"
    EVICTED = "evicted"
    ACKED = "acked"
    STORED = "stored"
    RESYNC = "resync"
    CONTROL = "control"
    ONLINE = "online"
    OFFLINE = "offline"
    LINK_UP = "link_up"
    LINK_DOWN = "link_down"
    OVERLAY = "overlay"


class Level(StrEnum):
    """The level of detail of a trace."""

    LOSS = "loss"
    """Losses, links, and counters per topic and minute; never which node read which event."""
    FULL = "full"
    """Everything: demo, lab, simulation."""


LOSS_KINDS = frozenset(
    {
        Kind.REJECTED,
        Kind.DROPPED,
        Kind.EXPIRED,
        Kind.EVICTED,
        Kind.RESYNC,
        Kind.ONLINE,
        Kind.OFFLINE,
        Kind.LINK_UP,
        Kind.LINK_DOWN,
    }
)
"""Kinds that are written one by one at level `loss`; others are only counted there, unless they have a
reason."""


class Record(Struct, frozen=True, gc=False):
    """One thing that happened at a node. It is an effect: the driver writes it to the trace."""

    kind: Kind
    topic: TopicId | None = None
    event: EventId | None = None
    """Id of the event; for a burst, of its last event."""
    device: DeviceId | None = None
    """Device of the event's author; with `seq` it gives the position in the chain."""
    seq: int | None = None
    """The event's sequence number; for a burst, of its first event."""
    events: int = 1
    """The number of events that the record is about."""
    peer: PeerId | None = None
    hops: int | None = None
    bytes: int | None = None
    reason: Reason | None = None
    note: str | None = None
    """A few words for people, or the neighbour set of `overlay`; nothing secret, no body."""


class Row(NamedTuple):
    """A record with node and time: one line of a trace, with its columns in this order."""

    time: float
    node: bytes
    counter: int
    """Counts the rows of a node from 0, so that a missing row is noticed."""
    kind: str
    topic: bytes | None
    event: bytes | None
    device: bytes | None
    seq: int | None
    events: int
    peer: bytes | None
    hops: int | None
    bytes: int | None
    reason: str | None
    note: str | None


SCHEMA: tuple[tuple[str, str, bool], ...] = (
    ("time", "double", False),
    ("node", "binary", False),
    ("counter", "bigint", False),
    ("kind", "string", False),
    ("topic", "binary", True),
    ("event", "binary", True),
    ("device", "binary", True),
    ("seq", "bigint", True),
    ("events", "bigint", False),
    ("peer", "binary", True),
    ("hops", "bigint", True),
    ("bytes", "bigint", True),
    ("reason", "string", True),
    ("note", "string", True),
)
"""Name of the column, its type in SQL terms, whether it may be null."""


def row_of(record: Record, time: float, node: bytes, counter: int) -> Row:
    """Add node, time and counter to a record."""
    return Row(
        time,
        node,
        counter,
        record.kind.value,
        record.topic,
        record.event,
        record.device,
        record.seq,
        record.events,
        record.peer,
        record.hops,
        record.bytes,
        None if record.reason is None else record.reason.value,
        record.note,
    )


class TraceSink(Protocol):
    """Keeps records and numbers them. No record that a driver hands it may stop the driver."""

    def write(self, node: PeerId, record: Record, now: float) -> None:
        """Keep a record of a node with its time."""

    def close(self) -> None:
        """Finish: no more records will come. A second call does nothing."""


class NullTrace:
    """A sink that keeps nothing."""

    def write(self, node: PeerId, record: Record, now: float) -> None:
        """Discard the record."""

    def close(self) -> None:
        """Do nothing."""
