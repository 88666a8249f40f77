"""The edges of one node in one topic: whom it wants, who wants it, and so who is a neighbour."""

from __future__ import annotations

from collections.abc import Mapping

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.machine.outbox import Outbox
from linnet.overlay.adjacency import Adjacency
from linnet.overlay.config import Overlay
from linnet.overlay.messages import EdgeClose, EdgeOpen


class Edges:
    """A peer is a neighbour once the link is open and both ends have said `EdgeOpen` on it.

    So an event that is sent to a neighbour always finds one that counts the sender as its own, and
    nothing is ever said about a topic to a peer that was not named for it.
    """

    def __init__(
        self, topic: TopicId, links: Mapping[PeerId, None], out: Outbox, adjacency: Adjacency
    ) -> None:
        self._topic = topic
        self._links = links
        self._out = out
        self._adjacency = adjacency
        self._purpose = topic.hex()
        self.wanted: dict[PeerId, None] = {}
        self.offered: dict[PeerId, None] = {}
        """Peers that count us as a neighbour, on the link that is open."""
        self.up: dict[PeerId, None] = {}
        self.neighbors: tuple[PeerId, ...] = ()
        """Those that are up: asked for with every message, made anew when it changes."""

    def want(self, contact: Contact) -> None:
        """Have a link to this peer opened and kept, for an edge."""
        peer = contact.peer
        if peer not in self.wanted:
            self.wanted[peer] = None
            self._out.hold(peer, contact.hints, self._purpose)
            self.handle_link_up(peer)

    def drop(self, peer: PeerId, tell: bool = True) -> None:
        """Give an edge up; the peer is told, unless it was the one who said so."""
        if peer not in self.wanted:
            return
        del self.wanted[peer]
        self._lower(peer)
        if tell and peer in self._links:
            self._out.send(peer, EdgeClose(self._topic))
        self._out.release(peer, self._purpose)

    def retry(self, contact: Contact) -> None:
        """Try once more for an edge that is wanted and not there."""
        peer = contact.peer
        if peer in self._links:
            self._out.send(peer, EdgeOpen(self._topic))
        else:
            self._out.hold(peer, contact.hints, self._purpose)

    def handle_link_up(self, peer: PeerId) -> None:
        """A link is open, perhaps one that an edge waits for."""
        if peer in self.wanted and peer in self._links:
            self._out.send(peer, EdgeOpen(self._topic))
            self._raise(peer)

    def handle_link_down(self, peer: PeerId) -> None:
        """A link is gone, and what was said on it with it."""
        self.offered.pop(peer, None)
        self._lower(peer)

    def handle_open(self, peer: PeerId) -> None:
        """A peer counts us as a neighbour."""
        self.offered[peer] = None
        self._raise(peer)

    def handle_close(self, peer: PeerId) -> None:
        """A peer counts us as a neighbour no longer."""
        self.offered.pop(peer, None)
        self._lower(peer)

    def _raise(self, peer: PeerId) -> None:
        if peer in self.up or peer not in self.wanted or peer not in self.offered or peer not in self._links:
            return
        self.up[peer] = None
        self.neighbors = tuple(self.up)
        self._adjacency.add(Overlay.TRACKER, self._topic, peer)

    def _lower(self, peer: PeerId) -> None:
        if peer in self.up:
            del self.up[peer]
            self.neighbors = tuple(self.up)
            self._adjacency.remove(Overlay.TRACKER, self._topic, peer)
