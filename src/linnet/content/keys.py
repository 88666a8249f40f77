"""Where attributes and nodes lie: in the space of Kademlia."""

from __future__ import annotations

from collections.abc import Iterable

from linnet.core.ids import PeerId
from linnet.overlay.kademlia import ids

_SPACE = b"content"


def attribute_key(name: str) -> ids.NodeId:
    """Where the rendezvous of an attribute is: by its name alone, whatever its kind and bounds."""
    return ids.record_key(_SPACE, name.encode())


def position(peer: PeerId) -> ids.NodeId:
    """Where a node is: the hash of its key, which it cannot choose."""
    return ids.node_id(peer)


def distance(peer: PeerId, key: ids.NodeId) -> int:
    """How far a node is from a key."""
    return ids.distance(ids.node_id(peer), key)


def nearest_name(peer: PeerId, names: Iterable[str]) -> str:
    """The attribute whose rendezvous is nearest to a node: where its subscription goes."""
    return min(names, key=lambda name: (distance(peer, attribute_key(name)), name))
