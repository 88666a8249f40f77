"""Who is a neighbour in which topic, and through which overlays: told once, however many have it."""

from __future__ import annotations

from collections.abc import Callable

from linnet.core.ids import PeerId, TopicId
from linnet.machine.outbox import Notice, Outbox
from linnet.overlay.config import Overlay
from linnet.overlay.notices import NeighborDown, NeighborUp


class NewOverlayMet(Notice, frozen=True, gc=False):
    """The overlay that a topic changes over to has given it a first neighbour."""

    topic: TopicId


class Adjacency:
    """The neighbours of all topics of a node, whichever overlay has them."""

    def __init__(self, out: Outbox) -> None:
        self._out = out
        self._sources: dict[tuple[TopicId, PeerId], dict[Overlay, None]] = {}
        """Through which overlays a peer is a neighbour in a topic."""
        self.awaited: dict[TopicId, Overlay] = {}
        """Topics that change over to an overlay that has given them no neighbour yet."""
        self.is_left_out: Callable[[PeerId], bool] = lambda peer: False
        """Which peers are in no overlay: links to them are none of its business."""

    def add(self, overlay: Overlay, topic: TopicId, peer: PeerId) -> None:
        """An overlay has a neighbour; it is told if no other had it."""
        sources = self._sources.setdefault((topic, peer), {})
        if not sources:
            self._out.notify(NeighborUp(topic, peer))
        sources[overlay] = None
        if self.awaited.get(topic) is overlay:
            del self.awaited[topic]
            self._out.notify(NewOverlayMet(topic))

    def remove(self, overlay: Overlay, topic: TopicId, peer: PeerId) -> None:
        """An overlay has a neighbour no longer; it is told unless another has it."""
        sources = self._sources.get((topic, peer), {})
        sources.pop(overlay, None)
        if not sources:
            self._sources.pop((topic, peer), None)
            self._out.notify(NeighborDown(topic, peer))

    def has_neighbors(self, topic: TopicId, overlay: Overlay) -> bool:
        """Whether an overlay has a neighbour in a topic."""
        return any(of == topic and overlay in sources for (of, _), sources in self._sources.items())
