"""The anchor: a storage node that is asked once which chains there are (docs/adr/0009-what-is-due.md)."""

from __future__ import annotations

from collections.abc import Iterable

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.timers import Timer
from linnet.delivery.context import Context
from linnet.machine.outbox import Outbox


class AnchorDue(Timer, frozen=True, gc=False):
    """The storage node that is the anchor had the time to answer."""

    topic: TopicId


class Anchor:
    """Holds a link to one storage node until it has answered, or to another if it does not."""

    def __init__(self, topic: TopicId, context: Context, out: Outbox) -> None:
        self._context = context
        self._out = out
        self._timer = AnchorDue(topic)
        self._purpose = f"anchor {topic.hex()[:16]}"
        self.peer: PeerId | None = None
        """Whom we ask."""

    def hold_one(self, nodes: Iterable[Contact]) -> PeerId:
        """Choose a storage node by chance, so that no single one is asked by all, and hold a link to it."""
        chosen = self._context.rng.choice(list(nodes))
        self.peer = chosen.peer
        self._out.hold(chosen.peer, chosen.hints, self._purpose)
        self._out.set_timer(self._context.config.history_timeout, self._timer)
        return chosen.peer

    def release(self) -> None:
        """Let the storage node go: it has answered, it does not, or nobody wants to know any more."""
        if self.peer is not None:
            peer, self.peer = self.peer, None
            self._out.cancel_timer(self._timer)
            self._out.release(peer, self._purpose)
