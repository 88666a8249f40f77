"""Sends the receipts of a stream: those of storage nodes, and of receivers that opted in.

Storage nodes send receipts to publishers that watch, and pass on those of receivers. Their own are statements
that can be checked later (`linnet.delivery.storage_statements`), except for publishers of older versions.
Events that a node keeps for others are evicted when they are too old or take too much room.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from linnet.core.effects import Send
from linnet.core.ids import Contact, EventId, PeerId, TopicId
from linnet.core.limits import CHAINS_PER_MESSAGE
from linnet.core.reasons import Reason
from linnet.core.timers import TopicTimer
from linnet.delivery.chain import Chain, ChainKey
from linnet.delivery.context import Context
from linnet.delivery.event_archive import EVICT_UNITS, Archive, known_heads
from linnet.delivery.messages import AskKept, AskNumber, ChainPlace, Kept, Receipt, Shown
from linnet.delivery.receipts import Confirmation, Ledger, sign_receipt, signer_of
from linnet.delivery.storage_statements import sign_kept, sign_shown, store_number
from linnet.event.event import Verified
from linnet.event.signing import recall_unit
from linnet.machine.outbox import Outbox
from linnet.streams.storage_room import MARGIN, StorageRoom
from linnet.trace.records import Kind, Record


def _places_of(chains: dict[ChainKey, Chain], is_kept: bool) -> list[ChainPlace]:
    """Return how far this device has the chains without a gap."""
    return [
        ChainPlace(chain.author, chain.device, chain.base, chain.next - 1, is_kept)
        for chain in chains.values()
        if chain.next > chain.base
    ]


def _pages(stated: list[tuple[ChainPlace, EventId]]) -> list[list[tuple[ChainPlace, EventId]]]:
    """Cut what is stated into what one message holds."""
    return [stated[start : start + CHAINS_PER_MESSAGE] for start in range(0, len(stated), CHAINS_PER_MESSAGE)]


class ReceiptDue(TopicTimer, frozen=True, gc=False):
    """Time to tell publishers how far their chains were written since the last receipt."""


class RoomDue(TopicTimer, frozen=True, gc=False):
    """Time to look whether there is room again for a stream whose newest events were refused."""


class EvictDue(TopicTimer, frozen=True, gc=False):
    """Time to look whether the kept events of a stream are too old or too many."""


class Keeper:
    """Confirms to publishers the events of one stream that this node has written, and evicts old ones."""

    def __init__(
        self,
        topic: TopicId,
        context: Context,
        archive: Archive,
        out: Outbox,
        room: StorageRoom | None = None,
    ) -> None:
        self._topic = topic
        self._context = context
        self._archive = archive
        self._out = out
        self._room = room or StorageRoom(context)
        self._refused: dict[ChainKey, None] = {}
        """The chains of which events were refused; later ones wait until those are there."""
        self.refuses: Reason | None = None
        """Why events are refused; None: they are not."""
        self._watchers: dict[PeerId, None] = {}
        self._changed: dict[ChainKey, Chain] = {}
        self._armed = False
        self._evicting = False
        self._begins: dict[ChainKey, int] | None = None
        """The first number of each chain that was in the log at the last look; None: look again."""
        self._holes = f"whole {topic.hex()}"
        self._whole = {
            key: int.from_bytes(value, "big") for key, value in context.store.cells.scan(self._holes)
        }
        """For each chain of which a part was given up, the first number behind that part."""
        self.retention: float | None = context.config.own_retention
        self.quota: int | None = context.config.own_bytes

    def add_watcher(self, peer: PeerId, ledger: Ledger, chains: dict[ChainKey, Chain], now: float) -> None:
        """Start to send a publisher receipts, and send it at once those that are known."""
        self._watchers[peer] = None
        for receipt in ledger.latest.values():
            self._pass_on(peer, receipt)
        self._send_receipts({peer: None}, chains, now)

    def remove_watcher(self, peer: PeerId) -> None:
        """Stop sending receipts to a publisher."""
        self._watchers.pop(peer, None)

    def take(self, chain: Chain, verified: Verified, size: int) -> bool:
        """Return whether there is room for the next unit of a chain, and count it; if not, refuse it.

        Once a unit is refused, so are those behind it: what is kept of a chain has no holes.
        """
        card = self._context.cards.find(chain.author, chain.device)
        device = PeerId(chain.key[:32] if card is None else card.device_key)
        why = self.refuses if chain.key in self._refused else None
        why = why or self._room.why_refused(self._topic, device, size, self.quota is not None)
        if why is None:
            self._room.note_stored(self._topic, device, size)
            return True
        is_news = not self._refused
        if self.refuses is not why:
            self.refuses, is_news = why, True
        self._refused[chain.key] = None
        unit = verified.unit
        place = (self._topic, verified.head, unit.device, unit.seq, len(unit.tails))
        self._out.record(Record(Kind.DROPPED, *place, bytes=size, reason=why, note="not stored"))
        if is_news:
            self._out.set_timer(self._context.config.evict_period, RoomDue(self._topic))
        self.note_written(chain)  # Its publisher learns why it is not confirmed.
        return False

    def take_again(self, is_needed: bool = False) -> list[ChainKey]:
        """Return the chains whose refused events may be fetched now; look again later if there are none.

        What is needed here is taken whether there is room for others or not.
        """
        if is_needed or not self._refused:
            return self._forget_refused()
        why = self._room.why_refused(self._topic, self._context.peer, MARGIN, self.quota is not None)
        if why is not None:
            self.refuses = why
            self._out.set_timer(self._context.config.evict_period, RoomDue(self._topic))
            return []
        return self._forget_refused()

    def _forget_refused(self) -> list[ChainKey]:
        """Refuse no chain any more; return those that were refused. What is not there is not confirmed."""
        again, self._refused, self.refuses = list(self._refused), {}, None
        for key in again:
            self._changed.pop(key, None)
        return again

    def note_written(self, chain: Chain) -> None:
        """Confirm soon that a chain was written further, in one receipt with others."""
        self._changed[chain.key] = chain
        if not self._armed and self._watchers:
            self._armed = True
            self._out.set_timer(self._context.config.receipt_delay, ReceiptDue(self._topic))

    def pass_on_receipt(self, receipt: Confirmation, source: PeerId) -> None:
        """Pass on a receiver's receipt to the watchers."""
        signer = signer_of(receipt)
        for peer in self._watchers:
            if peer not in (source, signer):
                self._pass_on(peer, receipt)

    def _pass_on(self, peer: PeerId, receipt: Confirmation) -> None:
        if isinstance(receipt, Receipt) or peer in self._context.keeping:
            self._out.send(peer, receipt)

    def send_receipts(self, now: float) -> None:
        """Send the watchers a receipt for the chains that have changed."""
        self._armed = False
        changed, self._changed = self._changed, {}
        self._send_receipts(self._watchers, changed, now)

    def keep(self, retention: float | None, quota: int | None) -> None:
        """Keep the stream for others, within these limits."""
        self.retention, self.quota = retention, quota
        self._room.count(self._topic)

    def let_go(self, is_used: bool) -> None:
        """Stop keeping the stream for others; evict what is not needed here."""
        self._room.count(self._topic, is_kept=False)
        self._forget_refused()
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
        if evicted:
            self._note_evicted()
        self._evicting = not self._archive.is_empty
        if self._evicting:
            # One round of eviction is bounded; if there is more to remove, the next round follows at once.
            pause = 0.0 if evicted >= EVICT_UNITS else self._context.config.evict_period
            self._out.set_timer(pause, EvictDue(self._topic))

    def trim(self, most: int, now: float) -> None:
        """Evict the oldest events beyond so many bytes."""
        if self._archive.evict(None, most, now):
            self._note_evicted()

    def _note_evicted(self) -> None:
        """Note that chains begin later now: statements say from where on."""
        self._begins = None
        self._room.recount(self._topic)

    def note_hole(self, chain: ChainKey, upto: int) -> None:
        """Note for good that a part of a chain before this number was given up: it is not stated as kept."""
        if upto > self._whole.get(chain, 0):
            self._whole[chain] = upto
            self._context.store.cells.put(self._holes, chain, upto.to_bytes(8, "big"))

    def state_all(self, peer: PeerId, asked: AskKept, keeps: bool, now: float) -> None:
        """Send a peer a signed statement of all that is kept, page by page; the last one is never full.

        Unless we keep the stream for others, it is none of it.
        """
        stated = list(self._stated_log(asked.since_ms / 1000)) if keeps else []
        for start in range(0, len(stated) + 1, CHAINS_PER_MESSAGE):
            page = stated[start : start + CHAINS_PER_MESSAGE]
            is_last = len(page) < CHAINS_PER_MESSAGE
            self._out.committed.send(
                peer, self._sign(page, now, asked.request, since_ms=asked.since_ms, done=is_last)
            )

    def show(self, peer: PeerId, asked: AskNumber, now: float) -> None:
        """Show a peer an event that we keep, or sign why we do not."""
        context, number = self._context, asked.number
        found = self._archive.page(asked.author, asked.device, number, number)
        unit = found[0] if found else None
        id = None
        if unit is not None:
            id = recall_unit(unit).events[number - (unit.seq or 0)].id
        shown = Shown(
            self._topic,
            context.peer,
            store_number(context.store.cells, context.peer, now),
            context.store.log.end(),
            asked.request,
            asked.author,
            asked.device,
            number,
            id,
            self._why_gone(asked) if unit is None else None,
            bytes(64),
            unit,
            None if unit is None else context.cards.find(unit.author, unit.device),
        )
        self._out.committed.send(peer, sign_shown(context.key, shown))

    def _why_gone(self, asked: AskNumber) -> Reason:
        """Return why we lack an event. What we ever stated and lack now was evicted or is damaged."""
        kept = next(
            (
                head
                for head in self._context.store.log.heads(self._topic)
                if (head.author, head.device) == (asked.author, asked.device)
            ),
            None,
        )
        if kept is not None and kept.first <= asked.number <= kept.last:
            return Reason.DAMAGED
        if self._archive.evicted and (kept is None or asked.number < kept.first):
            return Reason.QUOTA if self.retention is None else Reason.RETENTION
        return Reason.NOT_HELD

    def _send_receipts(self, peers: dict[PeerId, None], chains: dict[ChainKey, Chain], now: float) -> None:
        keeping = self._context.keeping
        apart = [peer for peer in peers if peer not in keeping]
        if apart:
            others = {key: chain for key, chain in chains.items() if key not in self._refused}
            places = _places_of(others, is_kept=True)
            for start in range(0, len(places), CHAINS_PER_MESSAGE):
                page = tuple(places[start : start + CHAINS_PER_MESSAGE])
                receipt = sign_receipt(self._context.key, self._topic, True, now, page)
                self._out.committed.extend(Send(peer, receipt) for peer in apart)
        if len(apart) < len(peers):
            refused = [chain for chain in chains.values() if chain.key in self._refused]
            taken = [chain for chain in chains.values() if chain.key not in self._refused]
            pages = _pages(list(self._stated(taken)))
            statements = [self._sign(page, now) for page in pages]
            if refused:
                wanted = {chain.key for chain in refused}
                parts = [each for each in self._stated_log(0.0) if each[0].author + each[0].device in wanted]
                # An empty page is for those of whose chains nothing is kept.
                pages = [*_pages(parts), *([[]] if len(parts) < len(wanted) else [])]
                statements += [self._sign(page, now, refuses=self.refuses) for page in pages]
            for kept in statements:
                self._out.committed.extend(Send(peer, kept) for peer in peers if peer in keeping)

    def _sign(
        self,
        stated: list[tuple[ChainPlace, EventId]],
        now: float,
        request: int = 0,
        *,
        since_ms: int = 0,
        done: bool = True,
        refuses: Reason | None = None,
    ) -> Kept:
        context = self._context
        return sign_kept(
            context.key,
            self._topic,
            store_number(context.store.cells, context.peer, now),
            context.store.log.end(),
            now,
            tuple([place for place, _ in stated]),
            tuple([head for _, head in stated]),
            request=request,
            since_ms=since_ms,
            done=done,
            refuses=refuses,
        )

    def _stated(self, chains: Iterable[Chain]) -> Iterator[tuple[ChainPlace, EventId]]:
        """Yield what can be stated of these chains: a range without gaps that is in the log, and its end."""
        chains = list(chains)
        begins = self._begins
        if begins is None or any(chain.key not in begins for chain in chains):
            heads = self._context.store.log.heads(self._topic)
            begins = self._begins = {head.author + head.device: head.first for head in heads}
        for chain in chains:
            last = chain.next - 1
            head, begin = chain.seen.head_at(last), begins.get(chain.key)
            if head is None or begin is None:
                continue  # Nothing of it is in the log.
            first = max(chain.base, self._whole.get(chain.key, 0), begin)
            if first <= last:
                yield ChainPlace(chain.author, chain.device, first, last, True), head

    def _stated_log(self, since: float) -> Iterator[tuple[ChainPlace, EventId]]:
        """Yield what can be stated of all chains, from what was stored since a time on.

        Chains that were evicted whole are named with their ends: we know of them, and keep nothing.
        """
        store = self._context.store
        kept = {head.author + head.device for head in store.log.heads(self._topic)}
        for head in known_heads(self._topic, store):
            first = max(head.first, self._whole.get(head.author + head.device, 0))
            if head.author + head.device not in kept:
                first = head.last + 1
            elif since:
                found = self._archive.stored_since(head.author, head.device, first, head.last, since)
                first = head.last + 1 if found is None else found
            yield ChainPlace(head.author, head.device, first, head.last, True), head.head


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
