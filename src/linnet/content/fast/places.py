"""Where boards are: at the nodes closest to an attribute, this one perhaps among them."""

from __future__ import annotations

from linnet.content.attribute_keys import Directory, Located, attribute_key, distance
from linnet.core.ids import Contact, PeerId
from linnet.overlay.kademlia.ids import NodeId

_NEAR = 8
"""A node keeps advertisements if it knows of fewer nodes that are closer to the attribute."""


def closest(ours: PeerId, found: Located) -> list[Contact]:
    """All that a lookup found, and this node, the closest to the key first."""
    known = [*found.contacts, Contact(ours)]
    return sorted(known, key=lambda contact: distance(contact.peer, found.key))


def is_near(ours: PeerId, attribute: str, directory: Directory) -> bool:
    """Whether this node is one of those closest to an attribute, as far as it knows."""
    key = attribute_key(attribute)
    return _closer(ours, key, directory.closest(key, _NEAR)) < _NEAR


def _closer(ours: PeerId, key: NodeId, known: list[Contact]) -> int:
    own = distance(ours, key)
    return sum(distance(contact.peer, key) < own for contact in known)
