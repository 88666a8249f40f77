"""The receiver's side of receipts, for those who opt in: storage nodes pass them on to publishers."""

from __future__ import annotations

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.limits import CHAINS_PER_MESSAGE
from linnet.core.timers import Timer
from linnet.delivery.chain import Chain, ChainKey
from linnet.delivery.context import Context
from linnet.delivery.messages import ChainPlace
from linnet.delivery.receipts import sign_receipt
from linnet.machine.outbox import Outbox

_DELAY = 1.0
"""Seconds that a receipt waits for more to be said in it: receivers are many, and nobody hurries."""


class AcknowledgeDue(Timer, frozen=True, gc=False):
    """A storage node is to be told how far this device has received a stream."""

    topic: TopicId


class Acknowledgements:
    """Says how far this device has received a stream, if a subscription allows it."""

    def __init__(self, topic: TopicId, context: Context, out: Outbox) -> None:
        self._topic = topic
        self._context = context
        self._out = out
        self._timer = AcknowledgeDue(topic)
        self._storage: dict[PeerId, tuple[str, ...]] = {}
        self._held: PeerId | None = None
        self._armed = False

    def set_storage(self, nodes: tuple[Contact, ...]) -> None:
        """These nodes keep the topic."""
        self._storage = {contact.peer: contact.hints for contact in nodes}

    def acknowledge_soon(self) -> None:
        """The application handled something: say so after a while."""
        if not self._armed:
            self._armed = True
            self._out.set_timer(_DELAY, self._timer)

    def acknowledge(self, chains: dict[ChainKey, Chain], now: float) -> None:
        """Tell one storage node, over a link that is there or is made for it."""
        self._armed = False
        near = next((peer for peer in self._storage if peer in self._context.links), None)
        if near is not None:
            self._send_receipt(near, chains, now)
        elif self._held is None and self._storage:
            self._held, hints = next(iter(self._storage.items()))
            self._out.hold(self._held, hints, self._purpose)

    def handle_link_up(self, peer: PeerId) -> None:
        """A link is open, perhaps the one that was made for it."""
        if peer == self._held:
            self.acknowledge_soon()

    def stop(self) -> None:
        """Nobody confirms any more."""
        self._out.cancel_timer(self._timer)
        if self._held is not None:
            self._out.release(self._held, self._purpose)
        self._held, self._armed = None, False

    def _send_receipt(self, peer: PeerId, chains: dict[ChainKey, Chain], now: float) -> None:
        places = tuple(
            ChainPlace(chain.author, chain.device, chain.base, chain.next - 1, False)
            for chain in chains.values()
            if chain.next > chain.base
        )[:CHAINS_PER_MESSAGE]
        self._out.send(peer, sign_receipt(self._context.key, self._topic, False, now, places))

    @property
    def _purpose(self) -> str:
        return f"confirming {self._topic.hex()[:16]}"
