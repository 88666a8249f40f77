"""The routing table of Kademlia: a k-bucket for each distance, and limits for each address prefix.

Ids of nodes and keys have 256 bits; their distance is XOR (Maymounkov and Mazieres 2002, section 2). The
module also saves contacts, so that a node that restarts has some to begin with.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from heapq import nsmallest
from ipaddress import IPv4Address, ip_address
from random import Random
from typing import Annotated, NamedTuple, NewType

import msgspec
from msgspec import Meta

from linnet.core.errors import StoreError
from linnet.core.ids import Contact, PeerId
from linnet.core.stores import Cells
from linnet.overlay.kademlia.config import KademliaConfig

NodeId = NewType("NodeId", bytes)
"""A point of the key space: the position of a node, or of a record."""

BITS = 256
_BYTES = BITS // 8
_NODE = b"linnet/kademlia node/1"
_KEY = b"linnet/kademlia key/1"


def node_id(peer: PeerId) -> NodeId:
    """Return the position of a node."""
    return NodeId(sha256(_NODE + peer).digest())


def record_key(space: bytes, name: bytes) -> NodeId:
    """Return the position of records of this name; each use has a space of its own."""
    return NodeId(sha256(_KEY + bytes((len(space),)) + space + name).digest())


def distance(one: NodeId, other: NodeId) -> int:
    """Return the exclusive or as a number. It is symmetric, and for each distance there is one id."""
    return int.from_bytes(one, "big") ^ int.from_bytes(other, "big")


def bucket_index(own: NodeId, other: NodeId) -> int:
    """Return the i for which the distance is from 2^i to below 2^(i+1)."""
    if own == other:
        raise ValueError("nobody is in a bucket of its own")
    return distance(own, other).bit_length() - 1


def id_in_bucket(own: NodeId, index: int, rng: Random) -> NodeId:
    """Draw an id of this bucket, each with the same chance."""
    apart = (1 << index) | rng.getrandbits(index) if index else 1
    return NodeId((int.from_bytes(own, "big") ^ apart).to_bytes(_BYTES, "big"))


class Seen(NamedTuple):
    """The outcome of noting a contact that is surely up."""

    taken: bool
    """Whether it has a place now, or waits for one."""
    ping: Contact | None
    """The contact to ping, if a newcomer waits for its place."""


class RoutingTable:
    """The contacts of a node: only peers that were met on a link and can be dialled."""

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

    def note_seen(self, contact: Contact) -> Seen:
        """Take in a peer that was just heard, unless there are too many of its address prefix."""
        peer = contact.peer
        if peer == self.own or not contact.hints:
            return Seen(False, None)
        index = bucket_index(self.id, node_id(peer))
        bucket = self._bucket(index)
        if (known := bucket.find(peer)) == contact:
            return Seen(True, bucket.note_seen(contact))
        if known is not None:
            self._count_contact(known, -1)
        if not self._admits(bucket, contact):
            if known is not None:
                # It has moved to an address prefix with too many contacts.
                bucket.drop(peer)
                del self._ids[peer]
            return Seen(False, None)
        ping = bucket.note_seen(contact)
        if bucket.find(peer) is not None:
            self._ids[peer] = node_id(peer)
            self._count_contact(contact, 1)
        return Seen(True, ping)

    def note_failure(self, peer: PeerId) -> Contact | None:
        """Note that a peer did not answer; return the contact that takes its place, if it lost it to one."""
        if peer == self.own:
            return None
        bucket = self._buckets.get(bucket_index(self.id, node_id(peer)))
        if bucket is None:
            return None
        if (held := bucket.find(peer)) is not None:
            self._count_contact(held, -1)
        gone, heir = bucket.note_failure(peer, lambda each: self._admits(bucket, each))
        if held is not None and not gone:
            self._count_contact(held, 1)
        elif gone:
            del self._ids[peer]
        if heir is not None:
            self._ids[heir.peer] = node_id(heir.peer)
            self._count_contact(heir, 1)
        return heir

    def find_nearest(self, target: NodeId, most: int, without: PeerId | None = None) -> tuple[Contact, ...]:
        """Return the known contacts nearest to a key, the nearest first."""
        to = int.from_bytes(target, "big")
        found = nsmallest(
            most + (without is not None),
            self._ids.items(),
            key=lambda each: int.from_bytes(each[1], "big") ^ to,
        )
        held = (self._bucket(bucket_index(self.id, at)).find(peer) for peer, at in found if peer != without)
        return tuple(each for each in held if each is not None)[:most]

    def note_lookup(self, target: NodeId, now: float) -> None:
        """Note that a lookup goes to a key: its bucket needs no refresh for a while."""
        if target != self.id:
            self._bucket(bucket_index(self.id, target)).last_lookup = now

    def find_idle_buckets(self, before: float) -> tuple[int, ...]:
        """Return the buckets that no lookup went through since then, from the nearest filled one outwards."""
        if not self._ids:
            return ()
        lowest = min(index for index, bucket in self._buckets.items() if len(bucket))
        return tuple(index for index in range(lowest, BITS) if self._bucket(index).last_lookup < before)

    def contacts(self) -> tuple[Contact, ...]:
        """Return all contacts, the farthest bucket first."""
        order = sorted(self._buckets, reverse=True)
        return tuple(contact for index in order for contact in self._buckets[index].contacts)

    def _admits(self, bucket: Bucket, contact: Contact) -> bool:
        theirs = prefixes_of(contact.hints)
        if any(self._prefixes.get(each, 0) >= self._config.table_prefix for each in theirs):
            return False
        return all(
            self._count_prefix(bucket, each, contact.peer) < self._config.bucket_prefix for each in theirs
        )

    def _count_prefix(self, bucket: Bucket, prefix: str, besides: PeerId) -> int:
        return sum(prefix in prefixes_of(each.hints) for each in bucket.contacts if each.peer != besides)

    def _count_contact(self, contact: Contact, by: int) -> None:
        for prefix in prefixes_of(contact.hints):
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


Admits = Callable[[Contact], bool]
"""Returns whether a contact may have a place, as far as its address goes."""


class Bucket:
    """A k-bucket: contacts of one distance, the least recently seen first, and contacts that wait for a
    place.

    Old contacts are preferred: most nodes that have been up for an hour are up for another (Maymounkov and
    Mazieres 2002, section 2.1). So a newcomer waits until the least recently seen contact does not answer a
    ping.
    """

    def __init__(self, k: int, replacements: int, failures: int) -> None:
        self._k = k
        self._most = replacements
        self._failures = failures
        self._contacts: dict[PeerId, Contact] = {}
        self._waiting: dict[PeerId, Contact] = {}
        self._failed: dict[PeerId, int] = {}
        self.last_lookup = 0.0
        """When a lookup last went through the bucket."""

    def __len__(self) -> int:
        return len(self._contacts)

    def find(self, peer: PeerId) -> Contact | None:
        """Return the contact of a peer that has a place."""
        return self._contacts.get(peer)

    def drop(self, peer: PeerId) -> None:
        """Remove a peer; its place stays free."""
        self._contacts.pop(peer, None)
        self._waiting.pop(peer, None)
        self._failed.pop(peer, None)

    @property
    def contacts(self) -> tuple[Contact, ...]:
        """The contacts with a place, the least recently seen first."""
        return tuple(self._contacts.values())

    @property
    def waiting(self) -> tuple[Contact, ...]:
        """The contacts that wait for a place, the least recently seen first."""
        return tuple(self._waiting.values())

    def note_seen(self, contact: Contact) -> Contact | None:
        """Take in a peer that is surely up; return the contact to ping if there is no place left."""
        peer = contact.peer
        self._failed.pop(peer, None)
        if self._contacts.pop(peer, None) is not None or len(self._contacts) < self._k:
            self._contacts[peer] = contact
            self._waiting.pop(peer, None)
            return None
        self._waiting.pop(peer, None)
        self._waiting[peer] = contact
        if len(self._waiting) > self._most:
            del self._waiting[next(iter(self._waiting))]
        return next(iter(self._contacts.values())) if self._waiting else None

    def note_failure(self, peer: PeerId, admits: Admits) -> tuple[bool, Contact | None]:
        """Note that a peer did not answer; return whether it lost its place, and the contact that takes it.

        Where no contact waits for the place the peer keeps it for a while: the fault may be on our side.
        """
        self._waiting.pop(peer, None)
        if peer not in self._contacts:
            return False, None
        self._failed[peer] = self._failed.get(peer, 0) + 1
        gone = self._contacts.pop(peer)
        heir = next((each for each in reversed(self._waiting.values()) if admits(each)), None)
        if heir is None and self._failed[peer] < self._failures:
            self._contacts = {peer: gone, **self._contacts}
            return False, None
        del self._failed[peer]
        if heir is not None:
            del self._waiting[heir.peer]
            self._contacts[heir.peer] = heir
        return True, heir


IPV4_BITS, IPV6_BITS = 24, 48
"""About as much as one customer of a provider can have at little cost."""
_NAME_PARTS = 2


@lru_cache(maxsize=4096)
def prefixes_of(hints: tuple[str, ...]) -> tuple[str, ...]:
    """Return the prefixes of all addresses of a peer, each once. This machine itself has none.

    They are counted so that one network cannot fill the table. A peer states its addresses itself: if it
    claims the address of another it cannot be dialled there, and loses its place when it is next asked
    something.
    """
    found = (prefix_of(hint) for hint in hints)
    return tuple(dict.fromkeys(each for each in found if each is not None))


def prefix_of(hint: str) -> str | None:
    """Return the network of an address, or the domain of a name; None for this machine itself."""
    host = hint.partition("://")[2].rpartition(":")[0].strip("[]").lower()
    try:
        address = ip_address(host)
    except ValueError:
        return None if host == "localhost" else ".".join(host.split(".")[-_NAME_PARTS:])
    if address.is_loopback:
        return None
    bits = IPV4_BITS if isinstance(address, IPv4Address) else IPV6_BITS
    shift = address.max_prefixlen - bits
    return f"{'4' if bits == IPV4_BITS else '6'}/{int(address) >> shift:x}"


CONTACTS_SPACE, CONTACTS_KEY = "kademlia", b"known"
CONTACTS_KEPT = 64
"""Contacts that are saved: some of them are still up after any pause."""

_encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[tuple[Contact, ...]] = msgspec.msgpack.Decoder(
    Annotated[tuple[Contact, ...], Meta(max_length=CONTACTS_KEPT)]
)


class SavedContacts:
    """Contacts of the table in one cell: a node begins with them after a restart."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells

    def load(self) -> tuple[Contact, ...]:
        """Return the saved contacts."""
        raw = self._cells.get(CONTACTS_SPACE, CONTACTS_KEY)
        if raw is None:
            return ()
        try:
            return _decoder.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise StoreError(f"the contacts of the hash table cannot be read: {error}") from error

    def save(self, contacts: tuple[Contact, ...]) -> None:
        """Save some contacts, spread evenly over all distances."""
        step = max(1, -(-len(contacts) // CONTACTS_KEPT))
        raw = _encode(contacts[::step])
        if raw != self._cells.get(CONTACTS_SPACE, CONTACTS_KEY):
            self._cells.put(CONTACTS_SPACE, CONTACTS_KEY, raw)
