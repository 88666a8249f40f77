"""The notices of an overlay to the machine above it about neighbours, the same for every overlay.

A neighbour is announced once, however many overlays of its topic have it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.inputs import LinkUp
from linnet.core.reasons import Reason
from linnet.machine.outbox import Notice, Outbox, TopicNotice
from linnet.overlay.config import Overlay


class NeighborUp(TopicNotice, frozen=True, gc=False):
    """A peer has become a neighbour in this topic, and its link is open."""

    peer: PeerId


class NeighborDown(TopicNotice, frozen=True, gc=False):
    """A peer is no longer a neighbour in this topic."""

    peer: PeerId


class StorageKnown(TopicNotice, frozen=True, gc=False):
    """The complete list of nodes that keep this topic."""

    nodes: tuple[Contact, ...]


class MembersKnown(TopicNotice, frozen=True, gc=False):
    """Some members of this topic that are not neighbours here, drawn at random."""

    contacts: tuple[Contact, ...]


class JoinRefused(TopicNotice, frozen=True, gc=False):
    """No tracker of this topic accepts us, with the reason; it is tried again later."""

    reason: Reason


class MembersWanted(Notice, frozen=True, gc=False):
    """A stream wants some members of this topic beside its neighbours; the overlay may know some."""

    topic: TopicId


class ReplaceNeighbor(Notice, frozen=True, gc=False):
    """This neighbour of a topic is of no use: the overlay may have another one."""

    topic: TopicId
    peer: PeerId


class OwnLinkUp(Notice, frozen=True, gc=False):
    """This node is one of its own trackers: it speaks with itself as over a link."""

    event: LinkUp


OverlayNotice: TypeAlias = NeighborUp | NeighborDown | StorageKnown | MembersKnown | JoinRefused


class NewOverlayMet(Notice, frozen=True, gc=False):
    """The new overlay of a topic has given it a first neighbour."""

    topic: TopicId


class Adjacency:
    """The neighbours of all topics of a node, whichever overlay has them."""

    def __init__(self, out: Outbox) -> None:
        self._out = out
        self._sources: dict[tuple[TopicId, PeerId], dict[Overlay, None]] = {}
        """The overlays through which a peer is a neighbour in a topic."""
        self.awaited: dict[TopicId, Overlay] = {}
        """Topics that change over to an overlay that has given them no neighbour yet."""
        self.is_left_out: Callable[[PeerId], bool] = lambda peer: False
        """Returns whether a peer is in no overlay, so that overlays ignore its links."""

    def add_neighbor(self, overlay: Overlay, topic: TopicId, peer: PeerId) -> None:
        """Add a neighbour of an overlay; announce it if no other overlay had it."""
        sources = self._sources.setdefault((topic, peer), {})
        if not sources:
            self._out.notify(NeighborUp(topic, peer))
        sources[overlay] = None
        if self.awaited.get(topic) is overlay:
            del self.awaited[topic]
            self._out.notify(NewOverlayMet(topic))

    def remove_neighbor(self, overlay: Overlay, topic: TopicId, peer: PeerId) -> None:
        """Remove a neighbour of an overlay; announce that unless another overlay has it."""
        sources = self._sources.get((topic, peer), {})
        sources.pop(overlay, None)
        if not sources:
            self._sources.pop((topic, peer), None)
            self._out.notify(NeighborDown(topic, peer))

    def has_neighbors(self, topic: TopicId, overlay: Overlay) -> bool:
        """Return whether an overlay has a neighbour in a topic."""
        return any(of == topic and overlay in sources for (of, _), sources in self._sources.items())
