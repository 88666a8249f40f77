"""One stream at one node: what comes in, goes on, is kept, and is handed to subscriptions.

The parts do the work; this is where they meet. Flooding and live delivery promise nothing and
wait for nothing; what is written and then promised waits for the commit.
"""

from __future__ import annotations

from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.limits import CHAINS_PER_MESSAGE, LARGEST_COUNT
from linnet.core.reasons import Reason
from linnet.delivery.chain import Chain, ChainKey
from linnet.delivery.context import Context
from linnet.delivery.event_archive import Archive
from linnet.delivery.flood import Flood, unit_bytes, unit_record
from linnet.delivery.gap_repair import GapRepair
from linnet.delivery.items import Missed
from linnet.delivery.messages import ChainPlace, Data, Heads, HistoryPage, Receipt, Resent
from linnet.delivery.suppression import Suppression
from linnet.event.event import Unverified, Verified
from linnet.identity.cards import Card, Revocation
from linnet.machine.outbox import Outbox, Promises
from linnet.streams.acknowledge import Acknowledgements
from linnet.streams.announcements import Anchor, Announcements
from linnet.streams.due import Due
from linnet.streams.ingest import Ingest
from linnet.streams.messages import PolicyIs
from linnet.streams.options import StorageRule
from linnet.streams.policy import Governance
from linnet.streams.publisher import Publisher
from linnet.streams.sealed.reader import Opening
from linnet.streams.sealed.sealed_stream import Sealed
from linnet.streams.storage import Keeper
from linnet.streams.stream_names import owner_of, topic_of
from linnet.streams.subscribe import Readers
from linnet.trace.records import Kind, Record


class Stream:
    """One stream at one node."""

    def __init__(self, name: str, context: Context, out: Outbox) -> None:
        self.name = name
        self.topic: TopicId = topic_of(name)
        self._context = context
        self._out = out
        cells = context.store.cells
        self.governance = Governance(self.topic, owner_of(name), cells)
        self.archive = Archive(self.topic, context.store, context.cards, context.config, out)
        self.ingest = Ingest(self.topic, context, self.governance)
        self.flood = Flood(self.topic)
        self.gaps = GapRepair(self.topic, context.config, context.links, out)
        self.keeper = Keeper(self.topic, context, self.archive, out)
        self.publisher = Publisher(self.topic, context, self.archive, out)
        self.sealed = Sealed(self.topic, context, self.governance, out)
        self.readers = Readers(self.topic, context, out, self.governance.owner, self.sealed.open)
        self.opening = Opening(
            self.topic, context, self.gaps, self.sealed.following, self.readers.hand_unlocked, out
        )
        self.acknowledgements = Acknowledgements(self.topic, context, out)
        self.is_unreachable = False
        """Whether it was told that nobody can dial this node and nobody is there whom it could."""
        self.stores = False
        """Whether this node keeps the stream for others."""
        self.storage: dict[PeerId, Contact] = {}
        self.suppression = Suppression(self.topic, self.flood, context.config.suppress, out)
        self.announcements = Announcements(
            self.topic,
            context,
            self.flood,
            self.ingest,
            self.archive,
            self.governance,
            out,
            self._reading_since,
        )
        self.due = Due(self.ingest, self.archive, self.readers, self.announcements)
        self.anchor = Anchor(self.topic, context, out)
        self.ingest.restore_own()
        self.received = 0
        self.duplicates = 0
        self.rejected = 0

    @property
    def keeps(self) -> bool:
        """Whether everything of this stream is written to the log."""
        return self.stores or self.readers.durable

    # What neighbours send.

    def handle_data(self, peer: PeerId, data: Data, now: float) -> None:
        """A unit on its way through the overlay."""
        unit = data.unit
        beyond = self.flood.heard(peer)
        if self.ingest.is_duplicate(unit):
            self._count_duplicate(peer, unit, data.hops, beyond)
            return
        try:
            verified, card = self.ingest.check(unit, data.card, now)
            chain, due, lost = self.ingest.accept(verified, now, live=True)
        except RemoteError as error:
            self._reject(peer, unit, error)
            return
        self._pass_on(verified, card, peer, data, now)
        self._take_in(chain, verified, due, data.hops, now)
        if lost is not None:
            self._give_up(chain, [lost], Reason.TOO_MANY, now)

    def _count_duplicate(self, peer: PeerId, unit: Unverified, hops: int, beyond: int) -> None:
        count = len(unit.tails)
        self.duplicates += count
        if self.suppression:
            self.suppression.note_source(unit, peer)
        size = unit_bytes(unit)
        self._out.record(
            Record(Kind.DUPLICATE, self.topic, None, unit.device, unit.seq, count, peer, hops, size)
        )
        if beyond > self._context.config.replay_slack:
            self._out.hang_up(peer, Reason.REPLAYING)

    def _reject(self, peer: PeerId, unit: Unverified, error: RemoteError) -> None:
        self.rejected += len(unit.tails)
        self._out.record(
            Record(
                Kind.REJECTED,
                self.topic,
                device=unit.device,
                seq=unit.seq,
                events=len(unit.tails),
                peer=peer,
                bytes=unit_bytes(unit),
                reason=error.reason,
                note=error.detail,
            )
        )
        self._out.blame(peer, error.reason)

    def _pass_on(self, verified: Verified, card: Card, peer: PeerId, data: Data, now: float) -> None:
        """Count a new unit and pass it on to neighbours."""
        unit = verified.unit
        count = len(unit.tails)
        hops = data.hops
        self.received += count
        self.flood.distinct += 1
        self._out.record(
            Record(
                Kind.RECEIVED,
                self.topic,
                verified.events[-1].id,
                unit.device,
                unit.seq,
                count,
                peer,
                hops,
                unit_bytes(unit),
            )
        )
        age_us = data.age_us + max(0, int(now * 1_000_000) - data.sent_us)
        self.suppression.spread(verified, card, peer, hops + 1, age_us, now)
        if self.stores and self.flood.is_served(peer) and self.flood.is_alone:
            self.publisher.hold_back(verified, self._out)

    def _take_in(
        self, chain: Chain, verified: Verified, due: list[Verified], hops: int | None, now: float
    ) -> None:
        """Read, hand over and write down an accepted unit, however it came, and look for what is missing."""
        has_owner = self.governance.owner is not None
        if has_owner:
            if self.governance.read(verified):
                self.announcements.send_policy(self.flood.neighbors)
            self.opening.read((verified,), now)
        if self.readers.unordered:
            said_at = chain.moments.at(verified.unit.seq or 0) if hops is None else None
            self.readers.hand(self.readers.unordered, verified, hops, said_at)
        if due:
            self._hand_in_turn(chain, due, hops, now)
        if not due or self.gaps.open:
            self.gaps.review_chain(chain)
            if chain.early > self._context.config.gaps_open:
                self._give_up(chain, chain.missing()[:1], Reason.QUEUE_FULL, now)
        self.announcements.note_news(chain)
        if has_owner:
            self.opening.look_for_keys(now)

    def _hand_in_turn(self, chain: Chain, due: list[Verified], hops: int | None, now: float) -> None:
        """Write units whose turn has come into the log, then hand them to those who asked for order."""
        if not due:
            return
        moments = chain.moments if hops is None else None
        if not self.keeps:
            for verified in due:
                said_at = None if moments is None else moments.at(verified.unit.seq or 0)
                self.readers.hand(self.readers.ordered, verified, hops, said_at)
            return
        promises = Promises()
        for verified in due:
            said_at = None if moments is None else moments.at(verified.unit.seq or 0)
            if said_at is not None:
                self.readers.older(verified, said_at)
            position = self.archive.keep(verified, now)
            if position is not None:
                self.readers.hand_written(position, verified, hops, promises)
                promises.record(unit_record(Kind.STORED, verified))
            self.readers.hand(self.readers.ordered, verified, hops, said_at)
        if promises:
            self._out.committed.extend(promises)
        self.keeper.note_written(chain)
        self.keeper.evict_later()

    # Neighbours, and what they know.

    def handle_neighbor_up(self, peer: PeerId, now: float) -> None:
        """A neighbour is there: tell it how far we know the chains, and the policy."""
        self.flood.up(peer)
        self.announcements.greet_neighbor(peer, self.keeps, now)
        self.send_backlog(now)

    def handle_neighbor_down(self, peer: PeerId) -> None:
        """A neighbour is gone."""
        self.flood.down(peer)
        self.announcements.forget_neighbor(peer)

    def handle_heads(self, peer: PeerId, heads: Heads, now: float) -> None:
        """Somebody says how far the chains go; what we lack of them is missing."""
        storage = peer in self.storage
        self.due.handle_question(peer, heads, self.keeps, now)
        final, answers = self.due.is_final(heads), heads.due or ()
        for number, place in enumerate(heads.chains):
            first_due = min(answers[number], place.last + 1) if number < len(answers) else None
            try:
                if first_due is not None:
                    self._settle(place, first_due, now)
                chain, due = self.ingest.announced(place, storage, first_due)
            except RemoteError as error:
                self._out.record(
                    Record(Kind.REJECTED, self.topic, device=place.device, peer=peer, reason=error.reason)
                )
                self._out.blame(peer, error.reason)
                return
            self.due.answered(peer, place, first_due)
            if place.held:
                self.gaps.note_holder(peer, place.author + place.device)
            if final:
                self.due.remember(place)
            if chain is not None:
                self._hand_in_turn(chain, due, None, now)
                self.gaps.review_chain(chain)
        self.announcements.note_heads(peer, heads)
        is_last = len(heads.chains) < CHAINS_PER_MESSAGE
        if heads.waited_ms or (self.stores and not storage and peer not in self.flood.neighbors):
            self.announcements.send_heads(peer, self.keeps, now)
        if storage and final and is_last and not self.ingest.anchored:
            self.note_anchored()
        if final and is_last and self.due.is_answered(peer):
            self.release_held(now)

    def note_anchored(self) -> None:
        """A storage node has told which chains there are."""
        self.ingest.anchored = True
        self.readers.note_anchored()
        self.anchor.release()

    def release_held(self, now: float) -> None:
        """Nobody is about to answer any more: what was held gets its turn."""
        for chain, due in self.ingest.release():
            self._hand_in_turn(chain, due, None, now)
            self.gaps.review_chain(chain)

    def _settle(self, place: ChainPlace, first: int, now: float) -> None:
        """Somebody says that a chain was said in our time from this number on: it is due from there."""
        if self.ingest.wants_all:
            self.readers.due_from(place.author + place.device, first)
        chain, lost = self.due.settle(place, first)
        if chain is not None:
            self._give_up(chain, lost, Reason.GAP_UNFILLED, now)
            self.gaps.review_chain(chain)

    def _reading_since(self) -> float | None:
        """Since when somebody here reads who wants only what is said from then on."""
        return self.readers.since

    def ask_neighbors(self, now: float) -> None:
        """Somebody reads here now: let neighbours know, so that they tell what is due since."""
        if not self.announcements.asks:
            return
        for peer in [peer for peer in self.flood.neighbors if not self.announcements.has_asked(peer)]:
            self.announcements.send_heads(peer, self.keeps, now)

    def set_storage(self, nodes: tuple[Contact, ...], now: float) -> None:
        """The tracker says who keeps this stream."""
        ours = self._context.peer
        self.storage = {node.peer: node for node in nodes if node.peer != ours}
        others = tuple(self.storage.values())
        self.publisher.none_since = None if others else now
        self.acknowledgements.set_storage(others)
        self.opening.set_storage(self.storage)
        mine = (Contact(ours),) if self.stores else ()
        self.gaps.set_storage(others)
        self.publisher.set_storage(others)
        self.readers.set_storage((*mine, *others))
        self.ask_anchor(now)

    def note_alone(self) -> None:
        """Nothing leads to anybody else: whoever waits for storage nodes need not."""
        self.publisher.note_alone()
        self.readers.note_alone()

    def keep(self, rule: StorageRule) -> None:
        """Keep this stream for others, going on from what the log holds."""
        kept, self.stores = self.keeps, True
        self.ingest.wants_all = True
        if not kept:
            self.readers.go_back(self.ingest.restore())
        self.keeper.retention, self.keeper.quota = rule.retention, rule.quota
        # Our own subscribers need nobody else for history.
        self.readers.set_storage((Contact(self._context.peer),))
        if not kept:
            for chain in self.ingest.chains.values():
                self.gaps.review_chain(chain)
        self.keeper.evict_later()

    def handle_link_up(self, peer: PeerId, now: float) -> None:
        """A link is open, to a storage node of this stream perhaps."""
        if peer not in self.storage:
            return
        self.gaps.handle_link_up(peer)
        self.publisher.handle_link_up(peer)
        self.readers.handle_link_up(peer)
        self.acknowledgements.handle_link_up(peer)
        self.announcements.send_heads(peer, self.keeps, now)

    def handle_link_down(self, peer: PeerId) -> None:
        """A link is gone."""
        self.flood.unlinked(peer)
        self.gaps.handle_link_down(peer)
        self.keeper.remove_watcher(peer)
        self.announcements.handle_link_down(peer)

    # GapRepair.

    def handle_resent(self, peer: PeerId, resent: Resent, now: float) -> None:
        """What somebody holds of a range that we asked for."""
        # Who keeps the stream may show what was said by devices that are expired or revoked since.
        judged_at = None if peer in self.storage else now
        good, errors = self.ingest.check_all(resent.units, resent.cards, judged_at)
        for error in errors:
            self._reject_page(peer, error)
        self.opening.read(good, now)
        self.due.look_back(resent.author + resent.device, now)
        ages = {unit.sig: age for unit, age in zip(resent.units, resent.ages_ms, strict=False)}
        for verified in good:
            if self.ingest.is_duplicate(verified.unit):
                continue
            try:
                age_ms = ages.get(verified.unit.sig)
                # An author's clock may be wrong; without a better word it is all there is.
                said_at = verified.events[-1].tail.time / 1000 if age_ms is None else now - age_ms / 1000
                chain, due, _ = self.ingest.accept(verified, min(said_at, now), now=now)
            except RemoteError as error:
                self._reject(peer, verified.unit, error)
                continue
            unit = verified.unit
            self.received += len(unit.tails)
            self.flood.distinct += 1
            self._out.record(
                Record(Kind.RESYNC, self.topic, verified.head, unit.device, unit.seq, len(unit.tails), peer)
            )
            self._take_in(chain, verified, due, None, now)
        asked = self.ingest.chains.get(resent.author + resent.device)
        if asked is not None:
            self.due.note_late(asked, self.keeps, now)
            self.gaps.handle_answer(asked, resent.done)

    def _reject_page(self, peer: PeerId, error: RemoteError) -> None:
        self.rejected += 1
        self._out.record(Record(Kind.REJECTED, self.topic, peer=peer, reason=error.reason, note=error.detail))
        self._out.blame(peer, error.reason)

    def repair_gap(self, key: ChainKey, now: float) -> None:
        """Ask for what is missing of a chain, or give it up."""
        chain = self.ingest.chains.get(key)
        if chain is None:
            self.gaps.forget_chain(key)
        elif self.gaps.ask_source(chain, now):
            self._give_up_hearsay(chain)
            self._give_up(chain, chain.missing(), Reason.GAP_UNFILLED, now)

    def _give_up_hearsay(self, chain: Chain) -> None:
        """Stop waiting for what was announced and never shown. Whoever was promised it is told."""
        hearsay = chain.forget_hearsay()
        if hearsay is None:
            return
        first, last = hearsay
        self._record_dropped(chain, first, last, Reason.GAP_UNFILLED, "hearsay")
        if first > chain.promised:
            return
        told = Missed(self.topic, chain.author, chain.device, first, last, Reason.GAP_UNFILLED)
        self.readers.tell_missed(told)
        if not len(chain.seen):
            # What comes live all the same begins earlier; nobody is told of the same twice.
            chain.rebase(last + 1)
            chain.told = last + 1

    def _record_dropped(
        self, chain: Chain, first: int, last: int, reason: Reason, note: str | None = None
    ) -> None:
        events = min(last - first + 1, LARGEST_COUNT)
        self._out.record(
            Record(Kind.DROPPED, self.topic, None, chain.device, first, events, reason=reason, note=note)
        )

    def _give_up(self, chain: Chain, ranges: list[tuple[int, int]], reason: Reason, now: float) -> None:
        """Say what could not be had, and go on behind it."""
        for first, last in ranges:
            self._record_dropped(chain, first, last, reason)
            missed = Missed(self.topic, chain.author, chain.device, first, last, reason)
            self.readers.tell_missed(missed)
            self._hand_in_turn(chain, chain.forgo(first, last), None, now)

    def leave(self) -> None:
        """The node leaves the stream: stop every timer and let go of every link."""
        self.publisher.leave()
        self.announcements.stop()
        self.gaps.stop()
        self.opening.stop()
        self.acknowledgements.stop()
        self.anchor.release()

    def handle_revoked(self, peer: PeerId, revocation: Revocation) -> None:
        """A person's word that a device is theirs no longer: take it and pass it on, if it is news."""
        try:
            news = self._context.cards.revoke(revocation)
        except RemoteError as error:
            self._reject_page(peer, error)
            return
        if not news:
            return
        self.sealed.note_revocation()
        note = "device revoked"
        self._out.record(Record(Kind.CONTROL, self.topic, device=revocation.device, peer=peer, note=note))
        self.announcements.send_revocation(revocation, peer)

    def send_backlog(self, now: float) -> None:
        """Send what was published, here or by those whom we serve, while there was nobody to send it to."""
        if self.stores and self.flood.is_alone:
            return
        served = tuple(peer for peer, each in self.flood.neighbors.items() if each.is_served)
        for verified in self.publisher.take_backlog():
            unit = verified.unit
            is_ours = unit.device == self._context.device
            card = self._context.cards.shown(unit.author, unit.device) or self._context.card
            sources = () if is_ours else served
            self._out.extend(self.flood.spread(verified, card, sources, 1 + (not is_ours), 0, now))

    def handle_page(self, peer: PeerId, page: HistoryPage, now: float) -> None:
        """A page of history for a subscription."""
        if peer not in self.storage and peer != self._context.peer:
            return
        good, errors = self.ingest.check_all(page.units, page.cards, None)
        for error in errors:
            self._reject_page(peer, error)
        self.opening.read(good, now)
        self.readers.take_page(peer, page, good)
        self.opening.look_for_keys(now)

    def handle_receipt(self, peer: PeerId, receipt: Receipt, now: float) -> None:
        """A receiver says how far it has the chains; publishers learn it, storage nodes pass it on."""
        try:
            news = self.publisher.ledger.learn(receipt, now)
        except RemoteError as error:
            self._reject_page(peer, error)
            return
        if not news:
            return
        self.publisher.handle_receipt(receipt)
        if self.stores:
            self.keeper.pass_on_receipt(receipt, peer)

    def ask_anchor(self, now: float) -> None:
        """Learn from a storage node which chains there are, once, so that nothing is missed from now on."""
        if self.ingest.anchored or self.stores or not self.storage or not self.readers:
            return
        if self.anchor.peer is not None:
            return
        peer = self.anchor.hold_one(self.storage.values())
        if peer in self._context.links:
            self.announcements.send_heads(peer, self.keeps, now)

    def change_anchor(self, now: float) -> None:
        """The storage node took too long: ask again, perhaps another."""
        self.anchor.release()
        self.ask_anchor(now)

    def handle_policy(self, peer: PeerId, message: PolicyIs) -> None:
        """A neighbour shows the owner's policy."""
        if message.unit == self.governance.unit:
            return
        try:
            # A policy outlives its device's card, but not the owner's word that the device is lost.
            verified, card = self.ingest.check(message.unit, message.card, None)
            if self._context.cards.revocation_of(card.person, card.device) is not None:
                raise InvalidEvent(Reason.CARD_REVOKED, "the owner revoked this device")
        except RemoteError as error:
            self._reject(peer, message.unit, error)
            return
        if self.governance.read(verified):
            self.announcements.send_policy(other for other in self.flood.neighbors if other != peer)
