"""What a node on the edge and its proxies tell each other (tags 81 to 84).

None of them names a person: a proxy knows its clients by the keys of their devices alone.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from linnet.core.ids import Count, WireTopicId
from linnet.core.limits import STREAM_NAME_CHARS
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.delivery.messages import Places

STREAMS_PER_MESSAGE = 64
"""Streams that are asked for at once; more are asked for in more messages."""

Name = Annotated[str, Meta(min_length=1, max_length=STREAM_NAME_CHARS)]
Digest = Annotated[bytes, Meta(min_length=16, max_length=16)]


class Wanted(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A stream that is asked for, and a digest of how far its chains are known."""

    stream: Name
    digest: Digest


class Serve(Message, frozen=True, tag=81):
    """Client to proxy: take part in these streams for me, and keep them while I am away."""

    request: Count
    streams: Annotated[tuple[Wanted, ...], Meta(min_length=1, max_length=STREAMS_PER_MESSAGE)]


class Answer(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """What becomes of one stream that was asked for."""

    refusal: Reason | None
    same: bool
    """Whether the proxy knows exactly what the client knows: then neither has to tell the other."""


class Served(Message, frozen=True, tag=82):
    """Proxy to client: the answers, in the order of what was asked, and what may be kept for the client."""

    request: Count
    answers: Annotated[tuple[Answer, ...], Meta(min_length=1, max_length=STREAMS_PER_MESSAGE)]
    kept_bytes: Count
    most_bytes: Count
    most_seconds: Count


class Unserve(Message, frozen=True, tag=83):
    """Client to proxy: send me no more of this stream, and keep it for me or not."""

    stream: Name
    keep: bool


class Taken(Message, frozen=True, tag=84):
    """Client to proxy: I have these chains up to here, without a gap. It stays between the two."""

    topic: WireTopicId
    chains: Places


EdgeMessage: TypeAlias = Serve | Served | Unserve | Taken
