"""Which overlay each stream has at this node: what its user chose, or what the configuration says."""

from __future__ import annotations

from collections.abc import Mapping

from linnet.core.errors import StoreError
from linnet.core.ids import TopicId
from linnet.core.stores import Cells
from linnet.overlay.config import Overlay
from linnet.streams.options import StreamOptions

SPACE = "stream.overlay"


class OverlayChoice:
    """The overlays of streams; a choice is kept over restarts."""

    def __init__(self, cells: Cells, options: Mapping[str, StreamOptions], default: Overlay) -> None:
        self._cells = cells
        self._options = options
        self._default = default

    def of(self, name: str, topic: TopicId) -> Overlay:
        """The overlay of a stream."""
        chosen = self._cells.get(SPACE, topic)
        if chosen is None:
            options = self._options.get(name)
            return self._default if options is None else options.overlay or self._default
        try:
            return Overlay(chosen.decode())
        except ValueError as error:
            raise StoreError("a stored choice of an overlay is damaged") from error

    def choose(self, topic: TopicId, overlay: Overlay | None) -> None:
        """The user wants this overlay for a stream; None: what is configured."""
        if overlay is None:
            self._cells.delete(SPACE, topic)
        else:
            self._cells.put(SPACE, topic, overlay.value.encode())
