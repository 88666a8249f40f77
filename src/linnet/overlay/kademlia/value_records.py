"""Value records of the network: bytes under a key, with a version and an expiry, signed by their owner.

A node that keeps a record need not understand it: the signature shows that all versions of one owner come
from the same key, and that they were not changed on the way. Only the reader can tell whether the owner is
the right one. Other parts of the node ask for records by notices, and get the outcomes by notices.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta, Struct

from linnet.core.errors import MalformedMessage, RemoteError
from linnet.core.ids import Contact, Count, PeerId, WireSignature
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey, verify
from linnet.machine.outbox import Notice
from linnet.overlay.kademlia.routing_table import NodeId

BODY_BYTES = 24 * 1024
"""Bytes of a body: a record of a name, padded to its largest size, with room to spare."""
LEEWAY = 300
"""Seconds by which clocks may differ."""
LONGEST = 365 * 86_400
"""The longest validity of a record, in seconds."""

_TAG = b"linnet/kademlia record/1"
_MS = 1000
_encode = msgspec.msgpack.Encoder().encode


class Stored(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """One record of one owner under one key. The newest version counts."""

    key: Annotated[NodeId, Meta(min_length=32, max_length=32)]
    owner: Annotated[bytes, Meta(min_length=32, max_length=32)]
    version: Count
    """Unix time in milliseconds."""
    expires: Count
    """Unix time in seconds from which the record is no longer valid."""
    body: Annotated[bytes, Meta(max_length=BODY_BYTES)]
    sig: WireSignature


def sign_record(owner: SigningKey, key: NodeId, version: int, expires: int, body: bytes) -> Stored:
    """Make and sign a record of the holder of this key."""
    fields = (key, owner.public, version, expires, body)
    return Stored(*fields, owner.sign(_TAG + _encode(fields)))


def check_record(record: Stored, now: float) -> None:
    """Raise `RemoteError` unless the record is signed, not expired, not from the future, and not valid for
    too long."""
    if len(record.body) > BODY_BYTES:
        raise MalformedMessage(f"{len(record.body)} bytes, at most {BODY_BYTES} are kept", Reason.TOO_LARGE)
    if record.expires <= now:
        raise RemoteError(Reason.STALE, "its time is over")
    if record.expires > now + LONGEST + LEEWAY or record.version > (now + LEEWAY) * _MS:
        raise RemoteError(Reason.FUTURE_TIME, "it is from the future, or good for too long")
    fields = (record.key, record.owner, record.version, record.expires, record.body)
    verify(record.owner, _TAG + _encode(fields), record.sig)


class SeekNodes(Notice, frozen=True):
    """Look for the nodes nearest to a key, as soon as this node has met others. Ends in `NodesFound`."""

    key: NodeId


class SeekRecords(Notice, frozen=True):
    """Look for the records under a key. Ends in `RecordsFound` of the same number."""

    number: int
    key: NodeId


class PlaceInNetwork(Notice, frozen=True):
    """Have the nodes nearest to its key keep a record. No notice reports the outcome."""

    record: Stored


class NodesFound(Notice, frozen=True):
    """The nodes nearest to a key that answered, the nearest first."""

    number: int
    key: NodeId
    contacts: tuple[Contact, ...]
    hops: int
    asked: int


class RecordsFound(Notice, frozen=True):
    """The records that nodes near a key keep under it, newest first. All are signed by their owners."""

    number: int
    records: tuple[Stored, ...]
    hops: int
    asked: int
    answered: int


class Placed(Notice, frozen=True):
    """The nodes that keep a record now, and those that do not, with the reasons."""

    number: int
    kept: tuple[PeerId, ...]
    refused: tuple[tuple[PeerId, Reason], ...]


Outcome: TypeAlias = NodesFound | RecordsFound | Placed
