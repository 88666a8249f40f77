"""What a node knows of others, for tests that decide it."""

from __future__ import annotations

from linnet.content.attribute_keys import distance
from linnet.core.ids import Contact, PeerId
from linnet.overlay.kademlia.routing_table import NodeId


class Known:
    """A directory of a few, or of nobody."""

    def __init__(self, *peers: PeerId, hints: tuple[str, ...] = ()) -> None:
        self.peers = [*peers]
        self._hints = hints

    def closest(self, key: NodeId, count: int) -> list[Contact]:
        """See `Directory.closest`."""
        ordered = sorted(self.peers, key=lambda peer: distance(peer, key))
        return [Contact(peer, self._hints) for peer in ordered[:count]]


class Listed(Known):
    """One that names them in the order of its list, wherever they are."""

    def closest(self, key: NodeId, count: int) -> list[Contact]:
        """See `Directory.closest`."""
        return [Contact(peer, self._hints) for peer in self.peers[:count]]
