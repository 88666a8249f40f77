"""Contacts and tables for the tests of Kademlia."""

from __future__ import annotations

from hashlib import sha256

from linnet.core.ids import Contact, PeerId
from linnet.overlay.kademlia.config import KademliaConfig
from linnet.overlay.kademlia.routing_table import bucket_index, node_id

CONFIG = KademliaConfig(k=3, replacements=2, failures=2, bucket_prefix=2, table_prefix=3)
OWN = PeerId(b"o" * 32)


def contact(number: int, network: int | None = None) -> Contact:
    """Somebody, in a network of their own unless it is said."""
    where = number if network is None else network
    peer = PeerId(sha256(f"contact/{number}".encode()).digest())
    return Contact(peer, (f"tls://11.{where >> 8 & 255}.{where & 255}.{number & 255}:7700",))


def farthest(count: int, network: int | None = None) -> list[Contact]:
    """So many who are all in the farthest bucket of `OWN`."""
    everybody = (contact(number, network) for number in range(10_000))
    far = (each for each in everybody if bucket_index(node_id(OWN), node_id(each.peer)) == 255)
    return [next(far) for _ in range(count)]
