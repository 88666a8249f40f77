"""The storage side of a stream: keeping for others, answering them, and saying what is kept."""

from __future__ import annotations

from linnet.core.effects import AfterCommit, Send, SetTimer
from linnet.core.ids import PeerId, TopicId
from linnet.core.limits import CHAINS_PER_MESSAGE
from linnet.core.timers import Tick
from linnet.delivery.archive import EVICT_UNITS, Archive
from linnet.delivery.chain import Chain, ChainKey
from linnet.delivery.context import Context
from linnet.delivery.messages import ChainPlace, Receipt
from linnet.delivery.receipts import Ledger, sign_receipt
from linnet.trace.records import Record

OWNER = "keeper"

KeeperEffect = AfterCommit[Send[Receipt]] | Send[Receipt] | SetTimer[Tick] | Record


class Keeper:
    """What a node that keeps a stream, or confirms that it received it, tells the publishers."""

    def __init__(self, topic: TopicId, context: Context, archive: Archive) -> None:
        self._topic = topic
        self._context = context
        self._archive = archive
        self._watchers: dict[PeerId, None] = {}
        self._changed: dict[ChainKey, Chain] = {}
        self._armed = False
        self._evicting = False
        self.retention: float | None = context.config.own_retention
        self.quota: int | None = context.config.own_bytes

    def watch(
        self, peer: PeerId, ledger: Ledger, chains: dict[ChainKey, Chain], now: float
    ) -> list[KeeperEffect]:
        """A publisher wants receipts; it gets what there is to say at once."""
        self._watchers[peer] = None
        known: list[KeeperEffect] = [Send(peer, receipt) for receipt in ledger.latest.values()]
        return [*known, *self._tell({peer: None}, chains, now)]

    def down(self, peer: PeerId) -> None:
        """A watcher wants no more, or its link is gone."""
        self._watchers.pop(peer, None)

    def advanced(self, chain: Chain) -> list[KeeperEffect]:
        """A chain was written further: say so soon, in one receipt with what else is."""
        self._changed[chain.key] = chain
        if self._armed or not self._watchers:
            return []
        self._armed = True
        return [SetTimer(self._context.config.receipt_delay, Tick(OWNER, "receipt", self._topic))]

    def pass_on(self, receipt: Receipt, source: PeerId) -> list[KeeperEffect]:
        """Tell the watchers what a receiver confirmed."""
        return [Send(peer, receipt) for peer in self._watchers if peer not in (source, receipt.receiver)]

    def fired(self, now: float) -> list[KeeperEffect]:
        """Say what has changed."""
        self._armed = False
        changed, self._changed = self._changed, {}
        return self._tell(self._watchers, changed, now)

    def let_go(self, is_used: bool) -> list[KeeperEffect]:
        """Keep for others no longer; what is not needed here goes."""
        config = self._context.config
        self.retention, self.quota = (config.own_retention, config.own_bytes) if is_used else (None, 0)
        return self.wrote()

    def wrote(self) -> list[KeeperEffect]:
        """Something was written: look in a while whether it is too old or too much."""
        if self._evicting or (self.retention is None and self.quota is None):
            return []
        self._evicting = True
        return [self._evict_timer(self._context.config.evict_period)]

    def evict(self, spare: bool, now: float) -> list[KeeperEffect]:
        """Remove what is too old or too much, unless somebody here may still want to read it."""
        records = [] if spare else self._archive.evict(self.retention, self.quota, now)
        self._evicting = not self._archive.is_empty
        if not self._evicting:
            return [*records]
        # What one look may remove is bounded; if that was not all, the next one follows at once.
        pause = 0.0 if len(records) >= EVICT_UNITS else self._context.config.evict_period
        return [*records, self._evict_timer(pause)]

    def _evict_timer(self, delay: float) -> SetTimer[Tick]:
        return SetTimer(delay, Tick(OWNER, "evict", self._topic))

    def _tell(
        self, peers: dict[PeerId, None], chains: dict[ChainKey, Chain], now: float
    ) -> list[KeeperEffect]:
        places = [
            ChainPlace(chain.author, chain.device, chain.base, chain.next - 1, True)
            for chain in chains.values()
            if chain.next > chain.base
        ]
        effects: list[KeeperEffect] = []
        for start in range(0, len(places), CHAINS_PER_MESSAGE):
            page = tuple(places[start : start + CHAINS_PER_MESSAGE])
            receipt = sign_receipt(self._context.key, self._topic, True, now, page)
            effects.append(AfterCommit(tuple(Send(peer, receipt) for peer in peers)))
        return effects
