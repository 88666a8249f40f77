"""The trace: one closed, versioned set of records, written alike by node and simulator.

A machine returns records among its effects; the driver adds time, node and counter. `SCHEMA` is
the contract with every reader.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from linnet.core.ids import DeviceId, EventId, PeerId, TopicId
from linnet.core.reasons import Reason

SCHEMA_VERSION = 1


class Kind(StrEnum):
    """What happened. The list is closed; a new kind is a new `SCHEMA_VERSION`."""

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
    """How much is written."""

    LOSS = "loss"
    """What went wrong, links, and counters per topic and minute; never who read what."""
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
"""Kinds that are written one by one at level `loss`; others are counted there, unless they have a reason."""


class Record(Struct, frozen=True, gc=False):
    """One thing that happened at a node. It is an effect: the driver writes it down."""

    kind: Kind
    topic: TopicId | None = None
    event: EventId | None = None
    """Id of the event, of a burst the id of its last."""
    device: DeviceId | None = None
    """Device of the event's author, and with `seq` the place in its chain."""
    seq: int | None = None
    """Of a burst, the first."""
    events: int = 1
    """How many events the record speaks of."""
    peer: PeerId | None = None
    hops: int | None = None
    bytes: int | None = None
    reason: Reason | None = None
    note: str | None = None
    """A few words for people, or the neighbour set of `overlay`; nothing secret, no body."""


class Row(NamedTuple):
    """A record with where and when: what is written, in this order of columns."""

    time: float
    node: bytes
    counter: int
    """Counts the rows of a node from 0, so that no row can go missing unseen."""
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
"""Column, type in the words of SQL, whether it may be null."""


def row_of(record: Record, time: float, node: bytes, counter: int) -> Row:
    """A record with where and when."""
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
