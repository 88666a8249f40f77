"""Which of its proxies a node on the edge asks for a stream, so that none need know all of its streams.

By rendezvous hashing (Thaler, Ravishankar 1998): each stream has an order of all proxies of its own, and goes
to the first of those that are there. So streams are shared out evenly, a proxy that goes hands on its own
streams and no others, and after a restart, or at another device with the same proxies, all is where it was.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from linnet.core.ids import PeerId, TopicId

_TAG = b"linnet/edge/allotment/1"


def preference(topic: TopicId, proxies: Iterable[PeerId]) -> tuple[PeerId, ...]:
    """All these proxies, in the order in which the stream is asked of them."""
    return tuple(sorted(proxies, key=lambda peer: sha256(_TAG + topic + peer).digest()))


def allotted(topic: TopicId, proxies: Iterable[PeerId], each: int) -> tuple[PeerId, ...]:
    """The proxies that a stream is asked of, in the order that they were given in; `each` 0: all of them."""
    able = tuple(proxies)
    if not each or each >= len(able):
        return able
    chosen = preference(topic, able)[:each]
    return tuple(peer for peer in able if peer in chosen)
