"""Maps attributes and nodes to keys of the Kademlia space, and splits hot attributes into parts.

The events of a hot attribute are spread over several nodes, under the names of its parts. Part 0 has the
attribute's own name; the others have a number behind a slash, which no attribute's name can contain.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from msgspec import Struct

from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, EventId, PeerId
from linnet.core.reasons import Reason
from linnet.machine.outbox import InPlaceNotice
from linnet.overlay.kademlia import routing_table
from linnet.overlay.kademlia.routing_table import NodeId

_SPACE = b"content"


def attribute_key(name: str) -> routing_table.NodeId:
    """Return the key that an attribute's rendezvous is nearest to; it depends on the name alone."""
    return routing_table.record_key(_SPACE, name.encode())


def position(peer: PeerId) -> routing_table.NodeId:
    """Return a node's place: the hash of its key, which it cannot choose freely."""
    return routing_table.node_id(peer)


def distance(peer: PeerId, key: routing_table.NodeId) -> int:
    """Return the distance of a node from a key."""
    return routing_table.distance(routing_table.node_id(peer), key)


def nearest_name(peer: PeerId, names: Iterable[str]) -> str:
    """Return the attribute whose rendezvous is nearest to a node: a subscription of the node goes there."""
    return min(names, key=lambda name: (distance(peer, attribute_key(name)), name))


class Directory(Protocol):
    """Finds nodes near a key among those that this node knows, without asking anyone."""

    def closest(self, key: NodeId, count: int) -> list[Contact]:
        """Return the known nodes closest to a key, the closest first, without this node."""


class Locate(InPlaceNotice, frozen=True, gc=False):
    """Look up the nodes closest to a key in the whole network; ends in `Located` of the same key."""

    key: NodeId


class Located(Struct, frozen=True, gc=False):
    """The nodes closest to a key that answered a full lookup, the closest first; empty if nobody answered."""

    key: NodeId
    contacts: tuple[Contact, ...]


MOST_PARTS = 16


def part_name(base: str, part: int) -> str:
    """Return the name of a part on the wire."""
    return f"{base}/{part}" if part else base


def base_of(attribute: str) -> str:
    """Return the attribute that a part belongs to."""
    return attribute.partition("/")[0]


def is_part(attribute: str) -> bool:
    """Return whether this names a part other than part 0."""
    return "/" in attribute


def check_part(attribute: str) -> None:
    """Raise `RemoteError` unless this names an attribute or a possible part of one."""
    if is_part(attribute) and attribute not in {
        part_name(base_of(attribute), n) for n in range(1, MOST_PARTS)
    }:
        raise RemoteError(Reason.MALFORMED, "no part of an attribute")


def part_of(event: EventId, parts: int) -> int:
    """Return the number of the part for an event, by its id, which its publisher cannot choose freely."""
    return int.from_bytes(event[:4]) % parts
