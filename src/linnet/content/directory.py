"""Who is close to a key: the seam to Kademlia. A test or a simulation may answer by other means."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from linnet.core.ids import Contact
from linnet.machine.outbox import InPlaceNotice
from linnet.overlay.kademlia.ids import NodeId


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
