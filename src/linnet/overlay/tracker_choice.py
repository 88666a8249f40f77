"""The choice of trackers for a topic: consistent hashing, unless its owner decides.

The thesis spreads streams over trackers in this way, and leaves each with a single tracker (Juslenius 2021,
section 4.1); here the ring gives an order, of which the second is the standby (see
docs/adr/0006-standby-trackers.md).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256

from linnet.core.ids import Contact, PeerId, TopicId

POINTS = 128
"""Points of a tracker on the ring: each of ten trackers then gets a tenth of the topics, to within a third of
that."""


class TrackerChoice:
    """All trackers of a network: the public ones, or those of a private network.

    Nodes that know the same trackers, in whatever order, agree on the order for each topic; if one of T
    trackers is removed, only about one topic in T gets another first tracker.
    """

    def __init__(self, trackers: Iterable[Contact], points: int = POINTS) -> None:
        self._contacts: dict[PeerId, Contact] = {}
        for contact in trackers:
            self._contacts.setdefault(contact.peer, contact)
        ring = sorted((place, peer) for peer in self._contacts for place in _points(peer, points))
        self._places = [place for place, _ in ring]
        self._peers = [peer for _, peer in ring]

    def __len__(self) -> int:
        return len(self._contacts)

    def choose_trackers(
        self, topic: TopicId, override: tuple[Contact, ...] = (), count: int | None = None
    ) -> tuple[Contact, ...]:
        """Return the trackers of a topic in order of preference: tracker, standby, next standby.

        `override` is the list of the topic's owner, which is used as it is; `count` is the most that are
        wanted.
        """
        if override:
            return tuple({contact.peer: contact for contact in override}.values())[:count]
        wanted = len(self._contacts) if count is None else min(count, len(self._contacts))
        found: dict[PeerId, Contact] = {}
        start = bisect_right(self._places, _place(b"linnet/tracked/1", topic, 0))
        for step in range(len(self._peers)):
            if len(found) == wanted:
                break
            peer = self._peers[(start + step) % len(self._peers)]
            found.setdefault(peer, self._contacts[peer])
        return tuple(found.values())


@lru_cache(maxsize=64)
def _points(peer: PeerId, points: int) -> tuple[int, ...]:
    """Return the points of a tracker on the ring; cached, since thousands of simulated nodes know the same
    ones."""
    return tuple(_place(b"linnet/tracker/1", peer, number) for number in range(points))


def _place(tag: bytes, name: bytes, number: int) -> int:
    return int.from_bytes(sha256(tag + name + number.to_bytes(4, "big")).digest()[:8], "big")
