"""The edges of one node in one topic: whom it wants, who wants it, and so who is a neighbour."""

from __future__ import annotations

from collections.abc import Mapping

from linnet.core.effects import Hold, Release, Send
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.overlay.effects import MemberEffect
from linnet.overlay.messages import EdgeClose, EdgeOpen
from linnet.overlay.notices import NeighborDown, NeighborUp


class Edges:
    """A peer is a neighbour once the link is open and both ends have said `EdgeOpen` on it.

    So an event that is sent to a neighbour always finds one that counts the sender as its own, and
    nothing is ever said about a topic to a peer that was not named for it.
    """

    def __init__(self, topic: TopicId, links: Mapping[PeerId, None]) -> None:
        self._topic = topic
        self._links = links
        self._purpose = topic.hex()
        self.wanted: dict[PeerId, None] = {}
        self.offered: dict[PeerId, None] = {}
        """Peers that count us as a neighbour, on the link that is open."""
        self.up: dict[PeerId, None] = {}
        self.neighbors: tuple[PeerId, ...] = ()
        """Those that are up: asked for with every message, made anew when it changes."""

    def want(self, contact: Contact) -> list[MemberEffect]:
        """Have a link to this peer opened and kept, for an edge."""
        peer = contact.peer
        if peer in self.wanted:
            return []
        self.wanted[peer] = None
        effects: list[MemberEffect] = [Hold(peer, contact.hints, self._purpose)]
        return effects + self.linked(peer)

    def drop(self, peer: PeerId, tell: bool = True) -> list[MemberEffect]:
        """Give an edge up; the peer is told, unless it was the one who said so."""
        if peer not in self.wanted:
            return []
        del self.wanted[peer]
        effects: list[MemberEffect] = self._lower(peer)
        if tell and peer in self._links:
            effects.append(Send(peer, EdgeClose(self._topic)))
        effects.append(Release(peer, self._purpose))
        return effects

    def retry(self, contact: Contact) -> list[MemberEffect]:
        """Try once more for an edge that is wanted and not there."""
        peer = contact.peer
        if peer in self._links:
            return [Send(peer, EdgeOpen(self._topic))]
        return [Hold(peer, contact.hints, self._purpose)]

    def linked(self, peer: PeerId) -> list[MemberEffect]:
        """A link is open, perhaps one that an edge waits for."""
        if peer not in self.wanted or peer not in self._links:
            return []
        effects: list[MemberEffect] = [Send(peer, EdgeOpen(self._topic))]
        return effects + self._raise(peer)

    def unlinked(self, peer: PeerId) -> list[MemberEffect]:
        """A link is gone, and what was said on it with it."""
        self.offered.pop(peer, None)
        return self._lower(peer)

    def opened(self, peer: PeerId) -> list[MemberEffect]:
        """A peer counts us as a neighbour."""
        self.offered[peer] = None
        return self._raise(peer)

    def closed(self, peer: PeerId) -> list[MemberEffect]:
        """A peer counts us as a neighbour no longer."""
        self.offered.pop(peer, None)
        return self._lower(peer)

    def _raise(self, peer: PeerId) -> list[MemberEffect]:
        if peer in self.up or peer not in self.wanted or peer not in self.offered or peer not in self._links:
            return []
        self.up[peer] = None
        self.neighbors = tuple(self.up)
        return [NeighborUp(self._topic, peer)]

    def _lower(self, peer: PeerId) -> list[MemberEffect]:
        if peer not in self.up:
            return []
        del self.up[peer]
        self.neighbors = tuple(self.up)
        return [NeighborDown(self._topic, peer)]
