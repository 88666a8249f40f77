"""The storage side of a stream: keeping for others, answering them, and saying what is kept."""

from __future__ import annotations

from linnet.core.effects import Send
from linnet.core.ids import PeerId, TopicId
from linnet.core.limits import CHAINS_PER_MESSAGE
from linnet.core.timers import Timer
from linnet.delivery.chain import Chain, ChainKey
from linnet.delivery.context import Context
from linnet.delivery.event_archive import EVICT_UNITS, Archive
from linnet.delivery.messages import ChainPlace, Receipt
from linnet.delivery.receipts import Ledger, sign_receipt
from linnet.machine.outbox import Outbox


class ReceiptDue(Timer, frozen=True, gc=False):
    """Publishers are to be told how far their chains were written since the last receipt."""

    topic: TopicId


class EvictDue(Timer, frozen=True, gc=False):
    """It is to be looked whether what is kept of a stream is too old or too much."""

    topic: TopicId


class Keeper:
    """What a node that keeps a stream, or confirms that it received it, tells the publishers."""

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
        """A publisher wants receipts; it gets what there is to say at once."""
        self._watchers[peer] = None
        for receipt in ledger.latest.values():
            self._out.send(peer, receipt)
        self._send_receipts({peer: None}, chains, now)

    def remove_watcher(self, peer: PeerId) -> None:
        """A watcher wants no more, or its link is gone."""
        self._watchers.pop(peer, None)

    def note_written(self, chain: Chain) -> None:
        """A chain was written further: say so soon, in one receipt with what else is."""
        self._changed[chain.key] = chain
        if not self._armed and self._watchers:
            self._armed = True
            self._out.set_timer(self._context.config.receipt_delay, ReceiptDue(self._topic))

    def pass_on_receipt(self, receipt: Receipt, source: PeerId) -> None:
        """Tell the watchers what a receiver confirmed."""
        for peer in self._watchers:
            if peer not in (source, receipt.receiver):
                self._out.send(peer, receipt)

    def send_receipts(self, now: float) -> None:
        """Tell the watchers what has changed."""
        self._armed = False
        changed, self._changed = self._changed, {}
        self._send_receipts(self._watchers, changed, now)

    def let_go(self, is_used: bool) -> None:
        """Keep for others no longer; what is not needed here goes."""
        config = self._context.config
        self.retention, self.quota = (config.own_retention, config.own_bytes) if is_used else (None, 0)
        self.evict_later()

    def evict_later(self) -> None:
        """Look in a while whether what is kept is too old or too much, if there is a bound."""
        if not self._evicting and (self.retention is not None or self.quota is not None):
            self._evicting = True
            self._out.set_timer(self._context.config.evict_period, EvictDue(self._topic))

    def evict(self, spare: bool, now: float) -> None:
        """Remove what is too old or too much, unless somebody here may still want to read it."""
        evicted = 0 if spare else self._archive.evict(self.retention, self.quota, now)
        self._evicting = not self._archive.is_empty
        if self._evicting:
            # What one look may remove is bounded; if that was not all, the next one follows at once.
            pause = 0.0 if evicted >= EVICT_UNITS else self._context.config.evict_period
            self._out.set_timer(pause, EvictDue(self._topic))

    def _send_receipts(self, peers: dict[PeerId, None], chains: dict[ChainKey, Chain], now: float) -> None:
        places = [
            ChainPlace(chain.author, chain.device, chain.base, chain.next - 1, True)
            for chain in chains.values()
            if chain.next > chain.base
        ]
        for start in range(0, len(places), CHAINS_PER_MESSAGE):
            page = tuple(places[start : start + CHAINS_PER_MESSAGE])
            receipt = sign_receipt(self._context.key, self._topic, True, now, page)
            self._out.committed.extend(Send(peer, receipt) for peer in peers)
