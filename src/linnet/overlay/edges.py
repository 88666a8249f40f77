"""The edges of one node in one topic: a peer is a neighbour once both ends want the edge."""

from __future__ import annotations

from collections.abc import Mapping

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.timers import TopicTimer
from linnet.machine.outbox import Outbox
from linnet.overlay.config import Overlay
from linnet.overlay.messages import EdgeClose, EdgeOpen
from linnet.overlay.notices import Adjacency


class ConnectDue(TopicTimer, frozen=True):
    """Fires when the connections of an instruction have had their time."""


class RetryDue(TopicTimer, frozen=True):
    """Fires when missing neighbours of a topic are to be tried again."""


class Edges:
    """The edges of a topic: a peer is a neighbour once the link is open and both ends have sent `EdgeOpen` on
    it.

    So an event that is sent to a neighbour always finds a peer that counts the sender as its own neighbour,
    and a topic is never mentioned to a peer that was not named for it.
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
        """The peers that are up: read with every message, rebuilt when the set changes."""

    def want_edge(self, contact: Contact) -> None:
        """Have a link to this peer opened and kept, for an edge."""
        peer = contact.peer
        if peer not in self.wanted:
            self.wanted[peer] = None
            self._out.hold(peer, contact.hints, self._purpose)
            self.handle_link_up(peer)

    def drop_edge(self, peer: PeerId, tell: bool = True) -> None:
        """Give up an edge; `tell` says whether to notify the peer, which need not hear of its own
        decision."""
        if peer not in self.wanted:
            return
        del self.wanted[peer]
        self._lower_edge(peer)
        if tell and peer in self._links:
            self._out.send(peer, EdgeClose(self._topic))
        self._out.release(peer, self._purpose)

    def retry_edge(self, contact: Contact) -> None:
        """Try once more to raise an edge that is wanted and not up."""
        peer = contact.peer
        if peer in self._links:
            self._out.send(peer, EdgeOpen(self._topic))
        else:
            self._out.hold(peer, contact.hints, self._purpose)

    def handle_link_up(self, peer: PeerId) -> None:
        """Send `EdgeOpen` on a link that an edge waits for."""
        if peer in self.wanted and peer in self._links:
            self._out.send(peer, EdgeOpen(self._topic))
            self._raise_edge(peer)

    def handle_link_down(self, peer: PeerId) -> None:
        """Lower the edge of a closed link, and forget the offers made on it."""
        self.offered.pop(peer, None)
        self._lower_edge(peer)

    def handle_open(self, peer: PeerId) -> None:
        """Note that a peer counts us as a neighbour."""
        self.offered[peer] = None
        self._raise_edge(peer)

    def handle_close(self, peer: PeerId) -> None:
        """Note that a peer counts us as a neighbour no longer."""
        self.offered.pop(peer, None)
        self._lower_edge(peer)

    def _raise_edge(self, peer: PeerId) -> None:
        if peer in self.up or peer not in self.wanted or peer not in self.offered or peer not in self._links:
            return
        self.up[peer] = None
        self.neighbors = tuple(self.up)
        self._adjacency.add_neighbor(Overlay.TRACKER, self._topic, peer)

    def _lower_edge(self, peer: PeerId) -> None:
        if peer in self.up:
            del self.up[peer]
            self.neighbors = tuple(self.up)
            self._adjacency.remove_neighbor(Overlay.TRACKER, self._topic, peer)
