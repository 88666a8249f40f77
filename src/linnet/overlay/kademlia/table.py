"""The routing table: a bucket for each distance, bounds for each address prefix, and who is nearest."""

from __future__ import annotations

from heapq import nsmallest
from typing import NamedTuple

from linnet.core.ids import Contact, PeerId
from linnet.overlay.kademlia.bucket import Bucket
from linnet.overlay.kademlia.config import KademliaConfig
from linnet.overlay.kademlia.ids import BITS, NodeId, bucket_index, node_id
from linnet.overlay.kademlia.prefixes import prefixes


class Seen(NamedTuple):
    """What became of a contact that was heard of for certain."""

    taken: bool
    """Whether it has a place now, or waits for one."""
    ping: Contact | None
    """Whom to ping, since a newcomer waits for its place."""


class RoutingTable:
    """Whom a node knows. Only peers that were met on a link and can be dialled are in it."""

    def __init__(self, own: PeerId, config: KademliaConfig) -> None:
        self.own = own
        self.id = node_id(own)
        self._config = config
        self._buckets: dict[int, Bucket] = {}
        self._ids: dict[PeerId, NodeId] = {}
        self._prefixes: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, peer: PeerId) -> bool:
        return peer in self._ids

    def seen(self, contact: Contact) -> Seen:
        """This peer was just heard; it comes in, waits, or is one too many of its address prefix."""
        peer = contact.peer
        if peer == self.own or not contact.hints:
            return Seen(False, None)
        index = bucket_index(self.id, node_id(peer))
        bucket = self._bucket(index)
        if (known := bucket.held(peer)) == contact:
            return Seen(True, bucket.seen(contact))
        if known is not None:
            self._count(known, -1)
        if not self._admits(bucket, contact):
            if known is not None:
                # It has moved to where too many are already.
                bucket.drop(peer)
                del self._ids[peer]
            return Seen(False, None)
        ping = bucket.seen(contact)
        if bucket.held(peer) is not None:
            self._ids[peer] = node_id(peer)
            self._count(contact, 1)
        return Seen(True, ping)

    def failed(self, peer: PeerId) -> Contact | None:
        """This peer did not answer; who has its place now, if it lost it to somebody."""
        if peer == self.own:
            return None
        bucket = self._buckets.get(bucket_index(self.id, node_id(peer)))
        if bucket is None:
            return None
        if (held := bucket.held(peer)) is not None:
            self._count(held, -1)
        gone, heir = bucket.failed(peer, lambda each: self._admits(bucket, each))
        if held is not None and not gone:
            self._count(held, 1)
        elif gone:
            del self._ids[peer]
        if heir is not None:
            self._ids[heir.peer] = node_id(heir.peer)
            self._count(heir, 1)
        return heir

    def nearest(self, target: NodeId, most: int, without: PeerId | None = None) -> tuple[Contact, ...]:
        """Whom we know nearest to a key, the nearest first."""
        to = int.from_bytes(target, "big")
        found = nsmallest(
            most + (without is not None),
            self._ids.items(),
            key=lambda each: int.from_bytes(each[1], "big") ^ to,
        )
        held = (self._bucket(bucket_index(self.id, at)).held(peer) for peer, at in found if peer != without)
        return tuple(each for each in held if each is not None)[:most]

    def touch(self, target: NodeId, now: float) -> None:
        """A lookup goes to this key: its bucket needs no refresh for a while."""
        if target != self.id:
            self._bucket(bucket_index(self.id, target)).touched = now

    def idle(self, before: float) -> tuple[int, ...]:
        """Buckets that no lookup went through since then, from the nearest with somebody in it outwards."""
        if not self._ids:
            return ()
        lowest = min(index for index, bucket in self._buckets.items() if len(bucket))
        return tuple(index for index in range(lowest, BITS) if self._bucket(index).touched < before)

    def contacts(self) -> tuple[Contact, ...]:
        """Everybody, the farthest bucket first."""
        order = sorted(self._buckets, reverse=True)
        return tuple(contact for index in order for contact in self._buckets[index].contacts)

    def _admits(self, bucket: Bucket, contact: Contact) -> bool:
        theirs = prefixes(contact.hints)
        if any(self._prefixes.get(each, 0) >= self._config.table_prefix for each in theirs):
            return False
        return all(self._here(bucket, each, contact.peer) < self._config.bucket_prefix for each in theirs)

    def _here(self, bucket: Bucket, prefix: str, besides: PeerId) -> int:
        return sum(prefix in prefixes(each.hints) for each in bucket.contacts if each.peer != besides)

    def _count(self, contact: Contact, by: int) -> None:
        for prefix in prefixes(contact.hints):
            count = self._prefixes.get(prefix, 0) + by
            if count:
                self._prefixes[prefix] = count
            else:
                del self._prefixes[prefix]

    def _bucket(self, index: int) -> Bucket:
        bucket = self._buckets.get(index)
        if bucket is None:
            config = self._config
            bucket = self._buckets[index] = Bucket(config.k, config.replacements, config.failures)
        return bucket
