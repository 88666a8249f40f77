"""Keys of sealed streams whose time has come are deleted, also those of streams that are not open."""

from __future__ import annotations

from linnet.core.effects import SetTimer
from linnet.core.ids import TopicId
from linnet.core.timers import Tick
from linnet.delivery.context import Context
from linnet.streams.joined import Joined
from linnet.streams.sealed import search
from linnet.streams.sealed.vault import Vault, prune_all, sealed_topics

PERIOD = 3_600.0
"""Seconds between looks for keys that are to be deleted."""
WHAT = "prune"


class Pruning:
    """Looks for keys to delete, as long as there are sealed streams."""

    def __init__(self, context: Context, joined: Joined) -> None:
        self._context = context
        self._joined = joined
        self._is_set = False

    def later(self) -> list[SetTimer[Tick]]:
        """Look in a while, if there is anything to look at and nothing was set before."""
        if self._is_set or not sealed_topics(self._context.store.cells):
            return []
        self._is_set = True
        return [SetTimer(PERIOD, Tick(search.OWNER, WHAT, b""))]

    def look(self, now: float) -> list[SetTimer[Tick]]:
        """Delete what is due now."""
        self._is_set = False
        prune_all(self._context.store.cells, self._context.config, self._opened, now)
        return self.later()

    def _opened(self, topic: TopicId) -> Vault | None:
        stream = self._joined.get(topic)
        return None if stream is None else stream.sealed.vault
