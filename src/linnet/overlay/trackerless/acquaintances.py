"""Everyone of whom a node holds a descriptor, with what it alone knows of them.

Views are lists of ids into this table. How old an entry is, when it was spoken to and how often
it failed is never told to anyone.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from linnet.core.ids import PeerId
from linnet.overlay.trackerless.messages import Descriptor

LIMIT = 2048
"""Acquaintances of a node: a megabyte of descriptors, and far more than all its views hold."""


class _Rounds:
    """How many rounds there were; shared by a table and its entries, so that ageing costs nothing."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class Acquaintance:
    """One peer: what it says of itself, and our own notes."""

    __slots__ = (
        "_fresh_at",
        "_rounds",
        "contacted",
        "descriptor",
        "failures",
        "first_seen",
        "pins",
        "worth",
        "worth_of",
    )

    def __init__(self, descriptor: Descriptor, first_seen: float, rounds: _Rounds) -> None:
        self.descriptor = descriptor
        self.first_seen = first_seen
        self.contacted: float | None = None
        """When it last answered us or asked us; None: never."""
        self.failures = 0
        """Questions in a row that it did not answer."""
        self.pins = 0
        """How many views need it; it is not evicted while there are any."""
        self.worth = 0.0
        """What it is worth to us for being alike (`linnet.overlay.trackerless.clustering`)."""
        self.worth_of: tuple[Descriptor, int, float] | None = None
        """Of what that was reckoned, and until when it may be taken for true."""
        self._rounds = rounds
        self._fresh_at = rounds.count

    @property
    def peer(self) -> PeerId:
        """Whom the notes are about."""
        return self.descriptor.peer

    @property
    def age(self) -> int:
        """Rounds since it was learned of, or last spoken to."""
        return self._rounds.count - self._fresh_at

    def refresh(self) -> None:
        """It is as young as can be."""
        self._fresh_at = self._rounds.count


class Acquaintances:
    """A bounded table of peers; strangers give way first, whoever came first before others."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._all: dict[PeerId, Acquaintance] = {}
        self._strangers: dict[PeerId, None] = {}
        """Neither pinned nor ever spoken to, in the order in which they were learned of."""
        self._met: dict[PeerId, None] = {}
        """Not pinned but spoken to, in the order of the last time."""
        self._turn: Iterator[PeerId] = iter(())
        self._rounds = _Rounds()
        self.evicted = 0
        """How many gave way to others so far."""

    def __len__(self) -> int:
        return len(self._all)

    def __contains__(self, peer: PeerId) -> bool:
        return peer in self._all

    def __iter__(self) -> Iterator[PeerId]:
        return iter(self._all)

    def get(self, peer: PeerId) -> Acquaintance | None:
        """The notes on a peer, if there are any."""
        return self._all.get(peer)

    def descriptor(self, peer: PeerId) -> Descriptor | None:
        """What a peer says of itself, if it is known."""
        known = self._all.get(peer)
        return None if known is None else known.descriptor

    def next(self, count: int) -> list[PeerId]:
        """The next ones in turn, so that everyone comes up; not all of them may still be known."""
        chosen = list(islice(self._turn, count))
        if len(chosen) < count:
            self._turn = iter(tuple(self._all))
            chosen += islice(self._turn, count - len(chosen))
        return chosen

    def learn(self, descriptor: Descriptor, now: float) -> bool:
        """Take in a checked descriptor; True if it is new, or newer than the one that was known.

        False as well if the table is full of peers that are pinned: then it is not taken in.
        """
        known = self._all.get(descriptor.peer)
        if known is not None:
            if descriptor.version <= known.descriptor.version:
                return False
            known.descriptor = descriptor
            return True
        if len(self._all) >= self._limit and not self._evict():
            return False
        self._all[descriptor.peer] = Acquaintance(descriptor, now, self._rounds)
        self._strangers[descriptor.peer] = None
        return True

    def contacted(self, peer: PeerId, now: float) -> None:
        """It spoke with us: it is up."""
        known = self._all.get(peer)
        if known is None:
            return
        known.contacted = now
        known.failures = 0
        known.refresh()
        self._strangers.pop(peer, None)
        self._met.pop(peer, None)
        if not known.pins:
            self._met[peer] = None

    def failed(self, peer: PeerId) -> int:
        """It did not answer; returns how many times in a row."""
        known = self._all.get(peer)
        if known is None:
            return 0
        known.failures += 1
        return known.failures

    def pin(self, peer: PeerId) -> None:
        """A view needs it. As many calls of `unpin` undo it."""
        known = self._all.get(peer)
        if known is None:
            return
        known.pins += 1
        self._strangers.pop(peer, None)
        self._met.pop(peer, None)

    def unpin(self, peer: PeerId) -> None:
        """A view needs it no longer."""
        known = self._all.get(peer)
        if known is None or not known.pins:
            return
        known.pins -= 1
        if not known.pins:
            (self._strangers if known.contacted is None else self._met)[peer] = None

    def forget(self, peer: PeerId) -> None:
        """Drop a peer, pinned or not."""
        self._all.pop(peer, None)
        self._strangers.pop(peer, None)
        self._met.pop(peer, None)

    def round(self) -> None:
        """One more round of gossip: everyone is older by one."""
        self._rounds.count += 1

    def expire(self, now: float) -> list[PeerId]:
        """Drop those not pinned whose descriptor ended; returns them."""
        past = [
            peer for peer, known in self._all.items() if not known.pins and known.descriptor.expires < now
        ]
        for peer in past:
            self.forget(peer)
        return past

    def _evict(self) -> bool:
        for order in (self._strangers, self._met):
            for peer in order:
                self.forget(peer)
                self.evicted += 1
                return True
        return False
