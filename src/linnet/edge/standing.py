"""How far a node knows a stream, told in sixteen bytes: two that know the same have nothing to say."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Protocol

from linnet.core.ids import TopicId
from linnet.delivery.messages import ChainPlace

_TAG = b"linnet/edge/standing/1"
_BYTES = 16
"""Enough that no two standings are taken for each other by chance; who makes it up fools itself alone."""


class Standing(Protocol):
    """Tells how far this node knows its streams."""

    def digest(self, topic: TopicId) -> bytes | None:
        """A digest of it; None if the stream is not open here."""

    def reached(self, topic: TopicId) -> tuple[ChainPlace, ...]:
        """Every chain that was received without a gap, and up to where."""


def digest_of(topic: TopicId, places: Iterable[ChainPlace], marks: Iterable[bytes] = ()) -> bytes:
    """A digest of how far chains go and of what else both must know, whatever the order of either."""
    told = sha256(_TAG + topic)
    for place in sorted(each.author + each.device + each.last.to_bytes(8, "big") for each in places):
        told.update(b"\x00" + place)
    for mark in sorted(marks):
        told.update(b"\x01" + sha256(mark).digest())
    return told.digest()[:_BYTES]
