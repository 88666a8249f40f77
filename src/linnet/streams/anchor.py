"""The anchor: a storage node that is asked once which chains there are (docs/adr/0009-what-is-due.md)."""

from __future__ import annotations

from collections.abc import Iterable

from linnet.core.effects import CancelTimer, Hold, Release, SetTimer
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.timers import Tick
from linnet.delivery.context import Context

OWNER = "anchor"

AnchorEffect = Hold | Release | SetTimer[Tick] | CancelTimer[Tick]


class Anchor:
    """Holds a link to one storage node until it has answered, or to another if it does not."""

    def __init__(self, topic: TopicId, context: Context) -> None:
        self._context = context
        self._tick = Tick(OWNER, "ask", topic)
        self._purpose = f"anchor {topic.hex()[:16]}"
        self.peer: PeerId | None = None
        """Whom we ask."""

    def cast(self, nodes: Iterable[Contact]) -> tuple[PeerId, list[AnchorEffect]]:
        """Choose a storage node by chance, so that no single one is asked by all."""
        chosen = self._context.rng.choice(list(nodes))
        self.peer = chosen.peer
        again = SetTimer(self._context.config.history_timeout, self._tick)
        return chosen.peer, [Hold(chosen.peer, chosen.hints, self._purpose), again]

    def weigh(self) -> list[AnchorEffect]:
        """Let the storage node go: it has answered, it does not, or nobody wants to know any more."""
        if self.peer is None:
            return []
        peer, self.peer = self.peer, None
        return [CancelTimer(self._tick), Release(peer, self._purpose)]
