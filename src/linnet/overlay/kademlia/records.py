"""Records that the network keeps: bytes under a key, with a version and an end, signed by whoever wrote them.

Who keeps one need not understand it: the signature shows that all versions of one owner come from one hand,
and that nobody on the way changed anything. Whether the owner is the right one only the reader can tell.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from linnet.core.errors import MalformedMessage, RemoteError
from linnet.core.ids import Count, WireSignature
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey, verify
from linnet.overlay.kademlia.ids import NodeId

BODY_BYTES = 24 * 1024
"""Bytes of a body: a record of a name, padded to its largest size, with room to spare."""
LEEWAY = 300
"""Seconds that clocks may differ by."""
LONGEST = 365 * 86_400
"""Seconds that a record may be good for."""

_TAG = b"linnet/kademlia record/1"
_MS = 1000
_encode = msgspec.msgpack.Encoder().encode


class Stored(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """One record of one owner under one key. The newest version counts."""

    key: Annotated[NodeId, Meta(min_length=32, max_length=32)]
    owner: Annotated[bytes, Meta(min_length=32, max_length=32)]
    version: Count
    """Milliseconds of Unix time."""
    expires: Count
    """The second of Unix time from which it is good no longer."""
    body: Annotated[bytes, Meta(max_length=BODY_BYTES)]
    sig: WireSignature


def sign_record(owner: SigningKey, key: NodeId, version: int, expires: int, body: bytes) -> Stored:
    """A record of whoever holds this key."""
    fields = (key, owner.public, version, expires, body)
    return Stored(*fields, owner.sign(_TAG + _encode(fields)))


def check_record(record: Stored, now: float) -> None:
    """Raise `RemoteError` unless it is signed, not over, and neither from the future nor for ever."""
    if len(record.body) > BODY_BYTES:
        raise MalformedMessage(f"{len(record.body)} bytes, at most {BODY_BYTES} are kept", Reason.TOO_LARGE)
    if record.expires <= now:
        raise RemoteError(Reason.STALE, "its time is over")
    if record.expires > now + LONGEST + LEEWAY or record.version > (now + LEEWAY) * _MS:
        raise RemoteError(Reason.FUTURE_TIME, "it is from the future, or good for too long")
    fields = (record.key, record.owner, record.version, record.expires, record.body)
    verify(record.owner, _TAG + _encode(fields), record.sig)
