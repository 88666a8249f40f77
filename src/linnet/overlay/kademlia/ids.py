"""Ids of nodes and keys: 256 bits, and how far two are apart (Maymounkov and Mazieres 2002, section 2).

A node's id is the hash of its device key. Who wants to stand near a key has to try key pairs: each bit of
nearness doubles the work, and the link proves that the key is held.
"""

from __future__ import annotations

from hashlib import sha256
from random import Random
from typing import NewType

from linnet.core.ids import PeerId

NodeId = NewType("NodeId", bytes)
"""A point of the space: where a node is, or where a record is kept."""

BITS = 256
_BYTES = BITS // 8
_NODE = b"linnet/kademlia node/1"
_KEY = b"linnet/kademlia key/1"


def node_id(peer: PeerId) -> NodeId:
    """Where a node is."""
    return NodeId(sha256(_NODE + peer).digest())


def record_key(space: bytes, name: bytes) -> NodeId:
    """Where records of this name are kept; each use has a space of its own."""
    return NodeId(sha256(_KEY + bytes((len(space),)) + space + name).digest())


def distance(one: NodeId, other: NodeId) -> int:
    """How far apart: the exclusive or, as a number. It is symmetric, and of each distance there is one id."""
    return int.from_bytes(one, "big") ^ int.from_bytes(other, "big")


def bucket_index(own: NodeId, other: NodeId) -> int:
    """The i for which the distance is from 2^i to below 2^(i+1)."""
    if own == other:
        raise ValueError("nobody is in a bucket of its own")
    return distance(own, other).bit_length() - 1


def id_in_bucket(own: NodeId, index: int, rng: Random) -> NodeId:
    """Any id of this bucket, each alike."""
    apart = (1 << index) | rng.getrandbits(index) if index else 1
    return NodeId((int.from_bytes(own, "big") ^ apart).to_bytes(_BYTES, "big"))
