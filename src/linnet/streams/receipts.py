"""Sends the receipts of a stream: those of storage nodes, and of receivers that opted in.

Storage nodes send receipts to publishers that watch, and pass on those of receivers. Events that a node keeps
for others are evicted when they are too old or take too much room.
"""

from __future__ import annotations

from linnet.core.effects import Send
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.limits import CHAINS_PER_MESSAGE
from linnet.core.timers import TopicTimer
from linnet.delivery.chain import Chain, ChainKey
from linnet.delivery.context import Context
from linnet.delivery.event_archive import EVICT_UNITS, Archive
from linnet.delivery.messages import ChainPlace, Receipt
from linnet.delivery.receipts import Ledger, sign_receipt
from linnet.machine.outbox import Outbox


def _places_of(chains: dict[ChainKey, Chain], is_kept: bool) -> list[ChainPlace]:
    """Return how far this device has the chains without a gap."""
    return [
        ChainPlace(chain.author, chain.device, chain.base, chain.next - 1, is_kept)
        for chain in chains.values()
        if chain.next > chain.base
    ]


class ReceiptDue(TopicTimer, frozen=True, gc=False):
    """Time to tell publishers how far their chains were written since the last receipt."""


class EvictDue(TopicTimer, frozen=True, gc=False):
    """Time to look whether the kept events of a stream are too old or too many."""


class Keeper:
    """Confirms to publishers the events of one stream that this node has written, and evicts old ones."""

    def __init__(self, topic: TopicId, context: Context, archive: Archive, out: Outbox) -> None:
        self._topic = topic
        self._context = context
        self._archive = archive
        self._out = out
        self._watchers: dict[PeerId, None] = {}
        self._changed: dict[ChainKey, Chain] = {}
        self._armed = False
        self._evicting = False
        self.retention: float | None = context.config.own_retention
        self.quota: int | None = context.config.own_bytes

    def add_watcher(self, peer: PeerId, ledger: Ledger, chains: dict[ChainKey, Chain], now: float) -> None:
        """Start to send a publisher receipts, and send it at once those that are known."""
        self._watchers[peer] = None
        for receipt in ledger.latest.values():
            self._out.send(peer, receipt)
        self._send_receipts({peer: None}, chains, now)

    def remove_watcher(self, peer: PeerId) -> None:
        """Stop sending receipts to a publisher."""
        self._watchers.pop(peer, None)

    def note_written(self, chain: Chain) -> None:
        """Confirm soon that a chain was written further, in one receipt with others."""
        self._changed[chain.key] = chain
        if not self._armed and self._watchers:
            self._armed = True
            self._out.set_timer(self._context.config.receipt_delay, ReceiptDue(self._topic))

    def pass_on_receipt(self, receipt: Receipt, source: PeerId) -> None:
        """Pass on a receiver's receipt to the watchers."""
        for peer in self._watchers:
            if peer not in (source, receipt.receiver):
                self._out.send(peer, receipt)

    def send_receipts(self, now: float) -> None:
        """Send the watchers a receipt for the chains that have changed."""
        self._armed = False
        changed, self._changed = self._changed, {}
        self._send_receipts(self._watchers, changed, now)

    def let_go(self, is_used: bool) -> None:
        """Stop keeping the stream for others; evict what is not needed here."""
        config = self._context.config
        self.retention, self.quota = (config.own_retention, config.own_bytes) if is_used else (None, 0)
        self.evict_later()

    def evict_later(self) -> None:
        """Schedule an eviction, if age or size is bounded."""
        if not self._evicting and (self.retention is not None or self.quota is not None):
            self._evicting = True
            self._out.set_timer(self._context.config.evict_period, EvictDue(self._topic))

    def evict(self, spare: bool, now: float) -> None:
        """Evict events that are too old or too many, unless `spare` says that they are still needed here."""
        evicted = 0 if spare else self._archive.evict(self.retention, self.quota, now)
        self._evicting = not self._archive.is_empty
        if self._evicting:
            # One round of eviction is bounded; if there is more to remove, the next round follows at once.
            pause = 0.0 if evicted >= EVICT_UNITS else self._context.config.evict_period
            self._out.set_timer(pause, EvictDue(self._topic))

    def _send_receipts(self, peers: dict[PeerId, None], chains: dict[ChainKey, Chain], now: float) -> None:
        places = _places_of(chains, is_kept=True)
        for start in range(0, len(places), CHAINS_PER_MESSAGE):
            page = tuple(places[start : start + CHAINS_PER_MESSAGE])
            receipt = sign_receipt(self._context.key, self._topic, True, now, page)
            self._out.committed.extend(Send(peer, receipt) for peer in peers)


_ACKNOWLEDGE_DELAY = 1.0
"""Seconds that a receipt waits to cover more events: receivers are many, and receipts are not urgent."""


class AcknowledgeDue(TopicTimer, frozen=True, gc=False):
    """Time to tell a storage node how far this device has received a stream."""


class Acknowledgements:
    """Sends receipts for what this device has received of a stream, if a subscription allows it."""

    def __init__(self, topic: TopicId, context: Context, out: Outbox) -> None:
        self._topic = topic
        self._context = context
        self._out = out
        self._timer = AcknowledgeDue(topic)
        self._storage: dict[PeerId, tuple[str, ...]] = {}
        self._held: PeerId | None = None
        self._armed = False

    def set_storage(self, nodes: tuple[Contact, ...]) -> None:
        """Replace the known storage nodes of the topic."""
        self._storage = {contact.peer: contact.hints for contact in nodes}

    def acknowledge_soon(self) -> None:
        """Send a receipt after a short delay: the application has handled something."""
        if not self._armed:
            self._armed = True
            self._out.set_timer(_ACKNOWLEDGE_DELAY, self._timer)

    def acknowledge(self, chains: dict[ChainKey, Chain], now: float) -> None:
        """Send one storage node a receipt, over an open link or one that is made for it."""
        self._armed = False
        near = next((peer for peer in self._storage if peer in self._context.links), None)
        if near is not None:
            self._send_receipt(near, chains, now)
        elif self._held is None and self._storage:
            self._held, hints = next(iter(self._storage.items()))
            self._out.hold(self._held, hints, self._purpose)

    def handle_link_up(self, peer: PeerId) -> None:
        """Acknowledge soon, if this link was made for that."""
        if peer == self._held:
            self.acknowledge_soon()

    def stop(self) -> None:
        """Stop acknowledging."""
        self._out.cancel_timer(self._timer)
        if self._held is not None:
            self._out.release(self._held, self._purpose)
        self._held, self._armed = None, False

    def _send_receipt(self, peer: PeerId, chains: dict[ChainKey, Chain], now: float) -> None:
        places = _places_of(chains, is_kept=False)[:CHAINS_PER_MESSAGE]
        self._out.send(peer, sign_receipt(self._context.key, self._topic, False, now, tuple(places)))

    @property
    def _purpose(self) -> str:
        return f"confirming {self._topic.hex()[:16]}"
