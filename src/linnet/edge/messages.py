"""The messages between a node on the edge and its proxies (tags 81 to 84).

None of them names a person: a proxy knows its clients only by the keys of their devices. How far a stream is
known is told by a digest of sixteen bytes: two nodes that know the same have nothing to send.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Annotated, Protocol, TypeAlias

from msgspec import Meta, Struct

from linnet.core.ids import Count, TopicId, WireTopicId
from linnet.core.limits import STREAM_NAME_CHARS
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.delivery.messages import ChainPlace, Places

_TAG = b"linnet/edge/standing/1"
_DIGEST_BYTES = 16
"""Enough that two standings never have the same digest by chance; a node that forges one fools only
itself."""


class Standing(Protocol):
    """How far this node knows its streams."""

    def digest(self, topic: TopicId) -> bytes | None:
        """Return a digest of how far a stream is known; None if it is not open here."""

    def reached(self, topic: TopicId) -> tuple[ChainPlace, ...]:
        """Return how far every chain was received without a gap."""


def digest_of(topic: TopicId, places: Iterable[ChainPlace], marks: Iterable[bytes] = ()) -> bytes:
    """Return a digest of how far chains go and of the marks, independent of the order of both."""
    told = sha256(_TAG + topic)
    for place in sorted(each.author + each.device + each.last.to_bytes(8, "big") for each in places):
        told.update(b"\x00" + place)
    for mark in sorted(marks):
        told.update(b"\x01" + sha256(mark).digest())
    return told.digest()[:_DIGEST_BYTES]


STREAMS_PER_MESSAGE = 64
"""The most streams in one request; more need more messages."""

Name = Annotated[str, Meta(min_length=1, max_length=STREAM_NAME_CHARS)]
Digest = Annotated[bytes, Meta(min_length=_DIGEST_BYTES, max_length=_DIGEST_BYTES)]


class Wanted(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A requested stream, and a digest of how far the client knows its chains."""

    stream: Name
    digest: Digest


class Serve(Message, frozen=True, tag=81):
    """Client to proxy: asks it to take part in these streams, and to keep them while the client is away."""

    request: Count
    streams: Annotated[tuple[Wanted, ...], Meta(min_length=1, max_length=STREAMS_PER_MESSAGE)]


class Answer(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The answer for one requested stream."""

    refusal: Reason | None
    same: bool
    """Whether the proxy knows exactly what the client knows: then neither has to tell the other."""


class Served(Message, frozen=True, tag=82):
    """Proxy to client: the answers, in the order of the request, and how much may be kept for the client."""

    request: Count
    answers: Annotated[tuple[Answer, ...], Meta(min_length=1, max_length=STREAMS_PER_MESSAGE)]
    kept_bytes: Count
    most_bytes: Count
    most_seconds: Count


class Unserve(Message, frozen=True, tag=83):
    """Client to proxy: asks it to send no more of this stream, and whether to keep it."""

    stream: Name
    keep: bool


class Taken(Message, frozen=True, tag=84):
    """Client to proxy: the client has these chains up to here without a gap. Only the two know this."""

    topic: WireTopicId
    chains: Places


EdgeMessage: TypeAlias = Serve | Served | Unserve | Taken
