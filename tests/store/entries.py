"""Units for tests of logs: their heads are made as real ones are, from chain and number."""

from __future__ import annotations

import hashlib

from linnet.core.ids import AuthorId, DeviceId, EventId, TopicId
from linnet.core.stores import Entry

NEWS = TopicId(b"news" * 8)
SPORT = TopicId(b"spor" * 8)
ANN = AuthorId(b"ann." * 8)
BEN = AuthorId(b"ben." * 8)
PHONE = DeviceId(b"phone...")
TABLET = DeviceId(b"tablet..")


def unit(
    first: int | None,
    count: int = 1,
    *,
    topic: TopicId = NEWS,
    author: AuthorId = ANN,
    device: DeviceId = PHONE,
    at: float = 0.0,
    size: int = 10,
    twin: int = 0,
) -> Entry:
    """A unit of `count` events from `first`; another `twin` is another unit in its place."""
    last = -1 if first is None else first + count - 1
    head = hashlib.sha256(repr((topic, author, device, last, twin)).encode()).digest()
    return Entry(topic, author, device, first, count, EventId(head), at, bytes([twin]) * size)
