"""What a sealed event binds: every other field of it, so that no ciphertext can be moved elsewhere."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from linnet.core.ids import AuthorId, DeviceId, EventId, TopicId
from linnet.event.event import Event, Tail

_TAG = b"linnet/sealed/1"
_encode = msgspec.msgpack.Encoder().encode


def bound(
    topic: TopicId, author: AuthorId, device: DeviceId, seq: int | None, prev: EventId | None, tail: Tail
) -> bytes:
    """The associated data of an event: all of its fields but the body, in the order of its encoding."""
    return _TAG + _encode((topic, author, device, seq, prev, replace(tail, body=b"")))


def bound_of(event: Event) -> bytes:
    """That of an event that is there."""
    return bound(event.topic, event.author, event.device, event.seq, event.prev, event.tail)
