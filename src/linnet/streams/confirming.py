"""The receiver's side of receipts, for those who opt in: storage nodes pass them on to publishers."""

from __future__ import annotations

from linnet.core.effects import CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.limits import CHAINS_PER_MESSAGE
from linnet.core.timers import Tick
from linnet.delivery.chain import Chain, ChainKey
from linnet.delivery.context import Context
from linnet.delivery.messages import ChainPlace, Receipt
from linnet.delivery.receipts import sign_receipt

OWNER = "confirming"
_DELAY = 1.0
"""Seconds that a receipt waits for more to be said in it: receivers are many, and nobody hurries."""

ConfirmingEffect = Send[Receipt] | Hold | Release | SetTimer[Tick] | CancelTimer[Tick]


class Confirming:
    """Says how far this device has received a stream, if a subscription allows it."""

    def __init__(self, topic: TopicId, context: Context) -> None:
        self._topic = topic
        self._context = context
        self._storage: dict[PeerId, tuple[str, ...]] = {}
        self._held: PeerId | None = None
        self._armed = False

    def storage(self, nodes: tuple[Contact, ...]) -> None:
        """These nodes keep the topic."""
        self._storage = {contact.peer: contact.hints for contact in nodes}

    def handled(self) -> list[ConfirmingEffect]:
        """The application handled something: say so soon."""
        if self._armed:
            return []
        self._armed = True
        return [SetTimer(_DELAY, self._tick)]

    def fired(self, chains: dict[ChainKey, Chain], now: float) -> list[ConfirmingEffect]:
        """Tell one storage node, over a link that is there or is made for it."""
        self._armed = False
        near = next((peer for peer in self._storage if peer in self._context.links), None)
        if near is not None:
            return self._tell(near, chains, now)
        if self._held is not None or not self._storage:
            return []
        self._held, hints = next(iter(self._storage.items()))
        return [Hold(self._held, hints, self._purpose)]

    def up(self, peer: PeerId) -> list[ConfirmingEffect]:
        """The link that was made for it is there."""
        if peer != self._held:
            return []
        return self.handled()

    def stop(self) -> list[ConfirmingEffect]:
        """Nobody confirms any more."""
        effects: list[ConfirmingEffect] = [CancelTimer(self._tick)]
        if self._held is not None:
            effects.append(Release(self._held, self._purpose))
        self._held, self._armed = None, False
        return effects

    def _tell(self, peer: PeerId, chains: dict[ChainKey, Chain], now: float) -> list[ConfirmingEffect]:
        places = tuple(
            ChainPlace(chain.author, chain.device, chain.base, chain.next - 1, False)
            for chain in chains.values()
            if chain.next > chain.base
        )[:CHAINS_PER_MESSAGE]
        return [Send(peer, sign_receipt(self._context.key, self._topic, False, now, places))]

    @property
    def _purpose(self) -> str:
        return f"confirming {self._topic.hex()[:16]}"

    @property
    def _tick(self) -> Tick:
        return Tick(OWNER, "receipt", self._topic)
