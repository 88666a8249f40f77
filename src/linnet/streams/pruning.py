"""Keys of sealed streams whose time has come are deleted, also those of streams that are not open."""

from __future__ import annotations

from linnet.core.ids import TopicId
from linnet.core.timers import Timer
from linnet.delivery.context import Context
from linnet.machine.outbox import Outbox
from linnet.streams.membership import Memberships
from linnet.streams.sealed.vault import Vault, prune_all, sealed_topics

PERIOD = 3_600.0
"""Seconds between looks for keys that are to be deleted."""


class PruneDue(Timer, frozen=True, gc=False):
    """Keys of sealed streams whose time has come are to be deleted."""


class Pruning:
    """Looks for keys to delete, as long as there are sealed streams."""

    def __init__(self, context: Context, memberships: Memberships, out: Outbox) -> None:
        self._context = context
        self._memberships = memberships
        self._out = out
        self._is_set = False

    def prune_later(self) -> None:
        """Look in a while, if there is anything to look at and nothing was set before."""
        if not self._is_set and sealed_topics(self._context.store.cells):
            self._is_set = True
            self._out.set_timer(PERIOD, PruneDue())

    def prune(self, now: float) -> None:
        """Delete what is due now."""
        self._is_set = False
        prune_all(self._context.store.cells, self._context.config, self._opened, now)
        self.prune_later()

    def _opened(self, topic: TopicId) -> Vault | None:
        stream = self._memberships.get(topic)
        return None if stream is None else stream.sealed.vault
