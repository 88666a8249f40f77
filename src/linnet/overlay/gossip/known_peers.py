"""All peers of which a node holds a descriptor, with its own notes about them.

Views are lists of ids into this table. How old an entry is, when it was spoken to and how often
it failed is never told to anyone.

The table notes of each device that was met on a local network whether it is known by that alone. A node can
part from such a device: then it learns nothing of it from others until they meet again.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from linnet.core.ids import PeerId
from linnet.overlay.gossip.messages import Descriptor

LIMIT = 2048
"""Known peers of a node: a megabyte of descriptors, and far more than all its views hold."""
_MET = 4096
"""Devices of local networks that are remembered in one life."""


class KnownPeer:
    """One peer: its descriptor, and our own notes."""

    __slots__ = (
        "contacted",
        "descriptor",
        "failures",
        "first_seen",
        "fresh_at",
        "pins",
        "worth",
        "worth_of",
    )

    def __init__(self, descriptor: Descriptor, first_seen: float, fresh_at: int) -> None:
        self.descriptor = descriptor
        self.first_seen = first_seen
        self.contacted: float | None = None
        """When the peer last answered us or asked us; None: never."""
        self.failures = 0
        """Questions in a row that the peer did not answer."""
        self.pins = 0
        """The number of views that need the peer; it is not evicted while there are any."""
        self.worth = 0.0
        """The peer's score for similarity (`linnet.overlay.gossip.interest_clustering`)."""
        self.worth_of: tuple[Descriptor, int, float] | None = None
        """The descriptor and interests that the score was computed from, and until when it may be used."""
        self.fresh_at = fresh_at
        """The round in which the peer was learned of, or last spoken to."""

    @property
    def peer(self) -> PeerId:
        """The peer that the notes are about."""
        return self.descriptor.peer


class KnownPeers:
    """A bounded table of peers; strangers are evicted first, the oldest before others."""

    def __init__(self, limit: int = LIMIT, only_local: bool = False) -> None:
        """With `only_local`, every known peer counts as known by local networks alone."""
        self._limit = limit
        self._only_local = only_local
        self._near: dict[PeerId, bool] = {}
        """Devices that were met on a local network, and whether they are known by that alone."""
        self._parted: dict[PeerId, None] = {}
        """Devices of local networks that we parted from: nothing is exchanged with them."""
        self._all: dict[PeerId, KnownPeer] = {}
        self._strangers: dict[PeerId, None] = {}
        """Peers neither pinned nor ever spoken to, in the order in which they were learned of."""
        self._met: dict[PeerId, None] = {}
        """Peers not pinned but spoken to, in the order of the last time."""
        self._turn: Iterator[PeerId] = iter(())
        self._rounds = 0
        self.evicted = 0
        """The number of peers evicted so far."""

    def __len__(self) -> int:
        return len(self._all)

    def __contains__(self, peer: PeerId) -> bool:
        return peer in self._all

    def __iter__(self) -> Iterator[PeerId]:
        return iter(self._all)

    def get(self, peer: PeerId) -> KnownPeer | None:
        """Return the notes on a peer, if there are any."""
        return self._all.get(peer)

    def descriptor_of(self, peer: PeerId) -> Descriptor | None:
        """Return the descriptor of a peer, if it is known."""
        known = self._all.get(peer)
        return None if known is None else known.descriptor

    def age_of(self, peer: PeerId) -> int:
        """Return the rounds since a peer was learned of, or last spoken to; 0 if it is not known."""
        known = self._all.get(peer)
        return 0 if known is None else self._rounds - known.fresh_at

    def take_next(self, count: int) -> list[PeerId]:
        """Return the next peers in turn, so that each comes up; some of them may be forgotten by now."""
        chosen = list(islice(self._turn, count))
        if len(chosen) < count:
            self._turn = iter(tuple(self._all))
            chosen += islice(self._turn, count - len(chosen))
        return chosen

    def learn_descriptor(self, descriptor: Descriptor, now: float) -> bool:
        """Take in a checked descriptor; return whether it is new, or newer than the known one.

        Returns False as well if the table is full of pinned peers, or if we parted from this one: then the
        descriptor is not taken in.
        """
        if descriptor.peer in self._parted:
            return False
        known = self._all.get(descriptor.peer)
        if known is not None:
            if descriptor.version <= known.descriptor.version:
                return False
            known.descriptor = descriptor
            return True
        if len(self._all) >= self._limit and not self._evict_one():
            return False
        self._all[descriptor.peer] = KnownPeer(descriptor, now, self._rounds)
        self._strangers[descriptor.peer] = None
        return True

    def note_contact(self, peer: PeerId, now: float) -> None:
        """Note that a peer spoke with us, and so is up."""
        known = self._all.get(peer)
        if known is None:
            return
        known.contacted = now
        known.failures = 0
        known.fresh_at = self._rounds
        self._strangers.pop(peer, None)
        self._met.pop(peer, None)
        if not known.pins:
            self._met[peer] = None

    def note_failure(self, peer: PeerId) -> int:
        """Note that a peer did not answer; return how many times in a row."""
        known = self._all.get(peer)
        if known is None:
            return 0
        known.failures += 1
        return known.failures

    def pin_peer(self, peer: PeerId) -> None:
        """Pin a peer that a view needs. As many calls of `unpin_peer` undo it."""
        known = self._all.get(peer)
        if known is None:
            return
        known.pins += 1
        self._strangers.pop(peer, None)
        self._met.pop(peer, None)

    def unpin_peer(self, peer: PeerId) -> None:
        """Undo one pin of a peer: a view needs it no longer."""
        known = self._all.get(peer)
        if known is None or not known.pins:
            return
        known.pins -= 1
        if not known.pins:
            (self._strangers if known.contacted is None else self._met)[peer] = None

    def forget_peer(self, peer: PeerId) -> None:
        """Drop a peer, pinned or not."""
        self._all.pop(peer, None)
        self._strangers.pop(peer, None)
        self._met.pop(peer, None)

    # Local networks.

    def note_address(self, peer: PeerId) -> None:
        """Note that the user named an address of a peer: it is not known by local networks alone."""
        if peer in self._near and not self._only_local:
            self._near[peer] = False
            self._parted.pop(peer, None)

    def note_met(self, peer: PeerId, is_named: bool) -> None:
        """Note that a device was met on a local network; `is_named`: the user gave its address.

        A device that shows a filter is known from the internet, since none is shown on local networks.
        """
        self._parted.pop(peer, None)
        if peer in self._near:
            return
        known = self._all.get(peer)
        is_far = is_named or (known is not None and bool(known.descriptor.filter))
        if len(self._near) >= _MET:
            oldest = next(iter(self._near))
            del self._near[oldest]
            self._parted.pop(oldest, None)
        self._near[peer] = self._only_local or not is_far

    def note_word(self, descriptor: Descriptor, teller: PeerId) -> None:
        """Take a checked descriptor from another node: its peer is known in the internet, too.

        Descriptors from devices of a local network do not count, nor those that a device shows there.
        """
        peer = descriptor.peer
        if not self._near.get(peer) or self._only_local:
            return
        if descriptor.filter and peer != teller and teller not in self._near:
            self._near[peer] = False
            self._parted.pop(peer, None)

    def is_near(self, peer: PeerId) -> bool:
        """Whether a peer is known by local networks alone."""
        return self._only_local or self._near.get(peer, False)

    def part_from(self, peer: PeerId) -> None:
        """Forget a device that local networks alone made known; learn nothing of it until it is met again."""
        self.forget_peer(peer)
        self._parted[peer] = None

    def is_parted(self, peer: PeerId) -> bool:
        """Whether we parted from a device of a local network."""
        return peer in self._parted

    def begin_round(self) -> None:
        """Count one more round of gossip: all entries age by one."""
        self._rounds += 1

    def drop_expired(self, now: float) -> list[PeerId]:
        """Drop peers that are not pinned and whose descriptor has expired; return them."""
        past = [
            peer for peer, known in self._all.items() if not known.pins and known.descriptor.expires < now
        ]
        for peer in past:
            self.forget_peer(peer)
        return past

    def _evict_one(self) -> bool:
        for order in (self._strangers, self._met):
            for peer in order:
                self.forget_peer(peer)
                self.evicted += 1
                return True
        return False
