"""Where attributes and nodes lie in the space of Kademlia, and who is close to them.

The events of a hot attribute are spread over several nodes, under the names of its parts. Part 0 has the
attribute's own name; others have a number behind a slash, which no name can have in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from msgspec import Struct

from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, EventId, PeerId
from linnet.core.reasons import Reason
from linnet.machine.outbox import InPlaceNotice
from linnet.overlay.kademlia import ids
from linnet.overlay.kademlia.ids import NodeId

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


class Directory(Protocol):
    """What a node knows of others without asking anyone."""

    def closest(self, key: NodeId, count: int) -> list[Contact]:
        """The known nodes that are closest to a key, the closest first, this node not among them."""


class Locate(InPlaceNotice, frozen=True, gc=False):
    """Look for the nodes closest to a key all over the network; ends in `Located` of the same key."""

    key: NodeId


class Located(Struct, frozen=True, gc=False):
    """The nodes closest to a key that answered a full lookup, the closest first; none: nobody answered."""

    key: NodeId
    contacts: tuple[Contact, ...]


MOST_PARTS = 16


def part_name(base: str, part: int) -> str:
    """What a part of an attribute is called on the wire."""
    return f"{base}/{part}" if part else base


def base_of(attribute: str) -> str:
    """The attribute that a part is of."""
    return attribute.partition("/")[0]


def is_part(attribute: str) -> bool:
    """Whether this is a part other than the first."""
    return "/" in attribute


def check_part(attribute: str) -> None:
    """Refuse what cannot be a part."""
    if is_part(attribute) and attribute not in {
        part_name(base_of(attribute), n) for n in range(1, MOST_PARTS)
    }:
        raise RemoteError(Reason.MALFORMED, "no part of an attribute")


def part_of(event: EventId, parts: int) -> int:
    """Which part an event goes to: by its id, which its publisher cannot choose freely."""
    return int.from_bytes(event[:4]) % parts
