"""One stream at one node: receives events, passes them on, keeps them and hands them to subscriptions.

Its parts do the work; this module connects them. Flooding and live delivery promise nothing and wait for
nothing; promises about written events wait for the commit.
"""

from __future__ import annotations

from math import inf

from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.limits import CHAINS_PER_MESSAGE, LARGEST_COUNT
from linnet.core.reasons import Reason
from linnet.delivery.chain import Chain, ChainKey, agreed_end
from linnet.delivery.context import Context
from linnet.delivery.event_archive import Archive
from linnet.delivery.flood import Flood, Suppression, unit_bytes, unit_record
from linnet.delivery.gap_repair import GapRepair
from linnet.delivery.items import Missed
from linnet.delivery.messages import (
    ChainPlace,
    Contradiction,
    Data,
    Heads,
    HistoryPage,
    Kept,
    Resent,
    Shown,
)
from linnet.delivery.receipts import Confirmation, signer_of
from linnet.delivery.storage_statements import check_kept
from linnet.delivery.subscriptions import has_cursor
from linnet.event.event import Unverified, Verified
from linnet.identity.cards import Card, Revocation
from linnet.machine.outbox import Outbox, Promises
from linnet.streams.announcements import Anchor, Announcements, Due
from linnet.streams.config import StorageRule
from linnet.streams.fork_detection import ForkDetection
from linnet.streams.ingest import REFUSED_ALIKE, Governance, Ingest
from linnet.streams.inspection import Inspection
from linnet.streams.isolation import Isolation
from linnet.streams.lazy_peers import LazyLinks, LazyPeers
from linnet.streams.lazy_push import LazyPush
from linnet.streams.messages import PolicyIs
from linnet.streams.publisher import Publisher
from linnet.streams.receipts import Acknowledgements, Keeper
from linnet.streams.sealed.reader import Opening
from linnet.streams.sealed.sealed_stream import Sealed
from linnet.streams.storage_checks import StorageChecks
from linnet.streams.storage_room import StorageRoom
from linnet.streams.stream_names import owner_of, topic_of
from linnet.streams.subscribe import Readers
from linnet.trace.records import Kind, Record

_TESTIMONY_PAUSE = 1.0
"""Seconds between two statements of one storage node that are passed on for readers, who may be anybody."""
_CONSULTED = 64
"""The most storage nodes that are remembered as asked which chains exist; the oldest are asked again."""


class Stream:
    """One stream at one node."""

    def __init__(
        self,
        name: str,
        context: Context,
        out: Outbox,
        room: StorageRoom | None = None,
        links: LazyLinks | None = None,
    ) -> None:
        """`links` are those to lazy peers, which all streams of a node share."""
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
        self.ingest.forgotten = self._forget_chain
        self.keeper = Keeper(self.topic, context, self.archive, out, room)
        self.publisher = Publisher(self.topic, context, self.archive, out)
        self.sealed = Sealed(self.topic, context, self.governance, out)
        self.readers = Readers(self.topic, context, out, self.governance.owner, self.sealed.open)
        self.opening = Opening(
            self.topic, context, self.gaps, self.sealed.following, self.readers.hand_unlocked, out
        )
        self.acknowledgements = Acknowledgements(self.topic, context, out)
        self.is_unreachable = False
        """Whether it was recorded that nobody can dial this node and there is nobody it could dial."""
        self.stores = False
        """Whether this node keeps the stream for others."""
        self.storage: dict[PeerId, Contact] = {}
        """The storage nodes that we ask and whose receipts count."""
        self._testified: dict[PeerId, float] = {}
        """When we last passed on what a storage node has told a reader."""
        self._consulted: dict[PeerId, None] = {}
        """The storage nodes that were asked which chains exist."""
        self._named: tuple[Contact, ...] = ()
        """Those that the owner or our configuration names. Without any, volunteers are asked."""
        self._volunteers: tuple[Contact, ...] | None = None
        """The nodes that offer to keep the stream, by the tracker's word; None: it has not spoken yet."""
        self.suppression = Suppression(self.topic, self.flood, context.config.suppress, out)
        self.announcements = Announcements(
            self.topic,
            context,
            self.flood,
            self.ingest,
            self.archive,
            self.governance,
            out,
            self.readers,
        )
        self.checks = StorageChecks(self.topic, context, self.publisher, self.flood, out)
        self.forks = ForkDetection(self.topic, context, self.flood, self.readers, out)
        links = links or LazyLinks(context.config.lazy_links)
        self.lazy = LazyPeers(self.topic, context, self.flood, self.forks.recent, links, out)
        self.inspection = Inspection(self.topic, self.flood, out)
        self.push = self._make_push()
        self.isolation = Isolation(self.topic, self.readers.tell_cut_off, out)
        self.due = Due(self.ingest, self.archive, self.readers, self.announcements)
        self.anchor = Anchor(self.topic, context, out)
        self.ingest.asks = lambda: self.announcements.asks
        self.ingest.restore_own()
        self.received = 0
        self.duplicates = 0
        self.rejected = 0

    def _make_push(self) -> LazyPush:
        return LazyPush(
            self._context,
            self.lazy,
            self.inspection,
            self.flood,
            self.suppression,
            self.forks.recent,
            self.ingest,
            self.announcements,
            lambda: self.stores,
        )

    @property
    def keeps(self) -> bool:
        """Whether every event of this stream is written to the log."""
        return self.stores or self.readers.durable

    # Data from neighbours.

    def handle_data(self, peer: PeerId, data: Data, now: float) -> None:
        """Take in a unit that arrives through the overlay: check it, pass it on, hand it over."""
        unit = data.unit
        beyond = self.flood.heard(peer)
        if self.ingest.is_duplicate(unit):
            if self.forks.is_other(unit):
                self._examine_other(peer, data, now)
            else:
                self._count_duplicate(peer, unit, data.hops, beyond)
            return
        try:
            verified, card = self.ingest.check(unit, data.card, now)
        except RemoteError as error:
            self._reject(peer, unit, error)
            return
        verified = self._context.doubt(verified, now)
        try:
            chain, due, lost = self.ingest.accept(verified, now, live=True)
        except RemoteError as error:
            self._reject(peer, unit, error)
            self.forks.compare(verified, card, peer)
            return
        self.inspection.note_unit(peer, unit, is_new=True)
        self.lazy.note_first(peer, now)
        self._pass_on(verified, card, peer, data, now)
        if chain.held and not self.ingest.asked:
            self.due.ask(peer, self.keeps, now)
        self._take_in(chain, verified, due, data.hops, now)
        if lost is not None:
            self._give_up(chain, [lost], Reason.TOO_MANY, now)

    def _examine_other(self, peer: PeerId, data: Data, now: float) -> None:
        """Examine a unit whose numbers were seen with another signature: a forgery, a fork, or said anew."""
        try:
            verified, card = self.ingest.check(data.unit, data.card, now)
        except RemoteError as error:
            self._reject(peer, data.unit, error)
            return
        self._count_duplicate(peer, data.unit, data.hops, 0)
        self.forks.compare(verified, card, peer)

    def _count_duplicate(self, peer: PeerId, unit: Unverified, hops: int, beyond: int) -> None:
        count = len(unit.tails)
        self.duplicates += count
        self.inspection.note_unit(peer, unit, is_new=False)
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
        self._out.blame(peer, self._context.cards.fault_of(peer, unit, error.reason))

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
        held_back = self.inspection.hold_back(verified, card, peer, hops + 1, age_us, now)
        self.suppression.spread(verified, card, (peer, *held_back), hops + 1, age_us, now)
        if self.stores and self.flood.is_served(peer) and self.flood.is_alone:
            self.publisher.hold_back(verified, self._out)

    def _take_in(
        self, chain: Chain, verified: Verified, due: list[Verified], hops: int | None, now: float
    ) -> None:
        """Read, hand over and write an accepted unit, live or repaired, and look for gaps."""
        has_owner = self.governance.owner is not None
        self.forks.recent.add(verified)
        if has_owner:
            if self.governance.read(verified):
                self.announcements.send_policy(self.flood.neighbors)
            self.opening.read((verified,), now)
        if self.readers.unordered:
            said_at = chain.moments.at(verified.unit.seq or 0) if hops is None else None
            self.readers.hand(self.readers.unordered, verified, hops, now, said_at)
        if due:
            self._hand_in_turn(chain, due, hops, now)
        if not due or self.gaps.repairs:
            self.gaps.review_chain(chain)
            if chain.early > self._context.config.gaps_open:
                self._give_up(chain, chain.missing()[:1], Reason.QUEUE_FULL, now)
            self._let_go_of_early(now)
        self.isolation.note_unit(chain.key, chain.key not in self.gaps.repairs)
        self.announcements.note_news(chain)
        self.lazy.note_news()
        if has_owner:
            self.opening.look_for_keys(now)

    def _hand_in_turn(self, chain: Chain, due: list[Verified], hops: int | None, now: float) -> None:
        """Write units whose turn has come to the log, then hand them to subscriptions that want order."""
        if not due:
            return
        moments = chain.moments if hops is None else None
        if not self.keeps:
            for verified in due:
                said_at = None if moments is None else moments.at(verified.unit.seq or 0)
                self.readers.hand(self.readers.ordered, verified, hops, now, said_at)
            return
        promises = Promises()
        for verified in due:
            said_at = None if moments is None else moments.at(verified.unit.seq or 0)
            if said_at is not None:
                self.readers.skip_older(verified, said_at, now)
            position = self.archive.keep(verified, now) if self._takes(chain, verified) else None
            if position is not None:
                self.readers.hand_written(position, verified, hops, promises)
                promises.record(unit_record(Kind.STORED, verified))
            self.readers.hand(self.readers.ordered, verified, hops, now, said_at)
        if promises:
            self._out.committed.extend(promises)
        self.keeper.note_written(chain)
        self.keeper.evict_later()

    def _takes(self, chain: Chain, verified: Verified) -> bool:
        """Return whether a unit is written: what is kept only for others needs room for others."""
        if not self.stores or self.readers.durable:
            return True
        return self.keeper.take(chain, verified, unit_bytes(verified.unit))

    def take_again(self, is_needed: bool = False) -> None:
        """Fetch what was refused, if there is room for it now or it is needed here."""
        floors = self.ingest.begin_again(self.keeper.take_again(is_needed))
        self.readers.go_back(floors)
        for key in floors:
            self.gaps.review_chain(self.ingest.chains[key])

    # Neighbours, and what they know.

    def handle_neighbor_up(self, peer: PeerId, now: float) -> None:
        """Tell a new neighbour how far we know the chains, and the policy."""
        self.flood.up(peer)
        self.push.note_neighbors(now)
        self.lazy.handle_neighbor_up(peer)
        self.announcements.greet_neighbor(peer, self.keeps, now)
        self.forks.greet_neighbor(peer)
        self.checks.greet_neighbor(peer)
        self.send_backlog(now)

    def handle_neighbor_down(self, peer: PeerId, now: float) -> None:
        """Forget a neighbour."""
        self.flood.down(peer)
        self.push.note_neighbors(now)
        self.inspection.handle_neighbor_down(peer)
        self.announcements.forget_neighbor(peer)

    def handle_heads(self, peer: PeerId, heads: Heads, now: float) -> None:
        """Learn from a peer how far the chains go; what we lack of them is a gap."""
        storage = peer in self.storage
        self.due.handle_question(peer, heads, self.keeps, now)
        final, answers = self.due.is_final(heads), heads.due or ()
        for number, place in enumerate(heads.chains):
            first_due = min(answers[number], place.last + 1) if number < len(answers) else None
            try:
                if first_due is not None:
                    self._settle(place, first_due, now)
                chain, due = self.ingest.note_place(place, storage, first_due)
            except RemoteError as error:
                self._out.record(
                    Record(Kind.REJECTED, self.topic, device=place.device, peer=peer, reason=error.reason)
                )
                self._out.blame(peer, error.reason)
                return
            self.due.note_answer(peer, place, first_due)
            if place.held:
                self.gaps.note_holder(peer, place.author + place.device)
            if final:
                self.due.remember(place)
            if chain is not None:
                self._hand_in_turn(chain, due, None, now)
                self.gaps.review_chain(chain, peer)
        self.announcements.note_heads(peer, heads)
        self._note_claims(peer, heads)
        is_last = len(heads.chains) < CHAINS_PER_MESSAGE
        if heads.waited_ms or (self.stores and not storage and peer not in self.flood.neighbors):
            self.push.answer_heads(peer, heads, self.keeps, now)
        if storage and final and is_last:
            if not self.ingest.anchored:
                self.note_anchored()
            elif peer == self.anchor.peer:
                self.anchor.release()
            self._consult_another(now)
        if final and is_last and self.due.is_answered(peer):
            self.release_held(now)

    def _note_claims(self, peer: PeerId, heads: Heads) -> None:
        """Note how far a peer says that chains go, and of which it claims what is missing here."""
        chains, repairs = self.ingest.chains, self.gaps.repairs
        for place in heads.chains:
            chain = chains.get(place.author + place.device)
            if chain is not None:
                if place.last > chain.seen.last:
                    card = self._context.cards.find(chain.author, chain.device)
                    is_own = card is not None and card.device_key == peer
                    chain.note_claim(peer, place.last, is_own)
                if chain.key in repairs:
                    self.isolation.note_claim(peer, chain.key)

    def note_anchored(self) -> None:
        """Note that a storage node has told us which chains exist."""
        self.ingest.anchored = True
        self.readers.note_anchored()
        self.anchor.release()

    def release_held(self, now: float) -> None:
        """Hand over what was held until peers answered."""
        for chain, due in self.ingest.release():
            self._hand_in_turn(chain, due, None, now)
            self.gaps.review_chain(chain)

    def _settle(self, place: ChainPlace, first: int, now: float) -> None:
        """Begin a chain at the first number that a peer says was published in our time."""
        if self.ingest.wants_all:
            self.readers.due_from(place.author + place.device, first)
        chain, lost = self.due.settle(place, first)
        if chain is not None:
            self._give_up(chain, lost, Reason.GAP_UNFILLED, now)
            self.gaps.review_chain(chain)

    def ask_neighbors(self, now: float) -> None:
        """Tell neighbours since when we read, so that they tell us what is due."""
        if not self.announcements.asks:
            return
        for peer in [peer for peer in self.flood.neighbors if not self.announcements.has_asked(peer)]:
            self.announcements.send_heads(peer, self.keeps, now)

    def set_storage(self, nodes: tuple[Contact, ...], now: float) -> None:
        """Replace the nodes that offer to keep the stream with those that the tracker knows."""
        self._volunteers = nodes
        self._settle_storage(self._named or nodes, now)

    def name_storage(self, nodes: tuple[Contact, ...], now: float) -> None:
        """Ask only these storage nodes and count only their receipts; with none, those of volunteers."""
        if nodes == self._named:
            return
        self._named = nodes
        self.publisher.are_named = bool(nodes)
        if nodes or self._volunteers is not None:
            self._settle_storage(nodes or self._volunteers or (), now)

    def _settle_storage(self, nodes: tuple[Contact, ...], now: float) -> None:
        ours, is_wrong = self._context.peer, self.checks.is_wrong
        self.checks.set_storage((node for node in nodes if node.peer != ours), now)
        self.storage = {node.peer: node for node in nodes if node.peer != ours and not is_wrong(node.peer)}
        for node in nodes:
            if is_wrong(node.peer):
                self.publisher.ledger.forget(node.peer)
        others = tuple(self.storage.values())
        self.publisher.none_since = None if others else now
        self.acknowledgements.set_storage(others)
        self.opening.set_storage(self.storage)
        mine = (Contact(ours),) if self.stores else ()
        self.gaps.set_storage(others)
        self.lazy.set_storage(others)
        self.publisher.set_storage(others)
        self.readers.set_storage((*mine, *others))
        self.ask_anchor(now)

    def _leave_out(self, keeper: PeerId, now: float) -> None:
        """Ask a storage node no more that is proved wrong, and forget its receipts."""
        self.publisher.ledger.forget(keeper)
        if keeper in self.storage:
            self._settle_storage(self._named or self._volunteers or (), now)

    def note_alone(self) -> None:
        """Stop waiting for storage nodes: no other node can be reached."""
        self.publisher.note_alone()
        self.readers.note_alone()

    def keep(self, rule: StorageRule) -> None:
        """Keep this stream for others, continuing from what the log holds."""
        kept, self.stores = self.keeps, True
        self.ingest.wants_all = True
        if not kept:
            self.readers.go_back(self.ingest.restore())
        self.keeper.keep(rule.retention, rule.quota)
        # Our own subscribers need nobody else for history.
        self.readers.set_storage((Contact(self._context.peer),))
        if not kept:
            for chain in self.ingest.chains.values():
                self.gaps.review_chain(chain)
        self.keeper.evict_later()

    def handle_link_up(self, peer: PeerId, now: float) -> None:
        """If the peer is a storage node, resume what waited for a link to it."""
        self.push.handle_link_up(peer, self.keeps, now)
        if peer not in self.storage:
            return
        self.gaps.handle_link_up(peer)
        self.publisher.handle_link_up(peer)
        self.checks.handle_link_up(peer)
        self.readers.handle_link_up(peer)
        self.acknowledgements.handle_link_up(peer)
        self.announcements.send_heads(peer, self.keeps, now)

    def handle_link_down(self, peer: PeerId, now: float) -> None:
        """Forget everything that depended on the link to a peer."""
        self.lazy.handle_link_down(peer)
        self.flood.unlinked(peer)
        self.push.note_neighbors(now)
        self.inspection.handle_neighbor_down(peer)
        self.gaps.handle_link_down(peer)
        self.keeper.remove_watcher(peer)
        self.announcements.handle_link_down(peer)

    # Repair.

    def handle_resent(self, peer: PeerId, resent: Resent, now: float) -> None:
        """Take in the units that a peer holds of a range that we asked for."""
        # A storage node may show events of devices whose cards have since expired or been revoked.
        judged_at = None if peer in self.storage else now
        good, errors = self.ingest.check_all(resent.units, resent.cards, judged_at)
        for error in errors:
            self._reject_page(peer, error)
        self.opening.read(good, now)
        self.due.look_back(resent.author + resent.device, now)
        ages = {unit.sig: age for unit, age in zip(resent.units, resent.ages_ms, strict=False)}
        for verified in (self._context.doubt(each, now) for each in good):
            if self.ingest.is_duplicate(verified.unit):
                continue
            try:
                age_ms = ages.get(verified.unit.sig)
                # The author's clock may be wrong, but without an age from the peer it is all there is.
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
            self.push.note_resent(peer, verified, said_at, now)
        asked = self.ingest.chains.get(resent.author + resent.device)
        if asked is not None:
            self.due.note_late(asked, self.keeps, now)
            is_refused = not good and any(error.reason in REFUSED_ALIKE for error in errors)
            self.gaps.handle_answer(peer, asked, resent.done, is_refused)

    def _reject_page(self, peer: PeerId, error: RemoteError) -> None:
        self.rejected += 1
        self._out.record(Record(Kind.REJECTED, self.topic, peer=peer, reason=error.reason, note=error.detail))
        self._out.blame(peer, error.reason)

    def _forget_chain(self, key: ChainKey) -> None:
        """Forget what is missing of a chain that was only announced, and made room for another."""
        self.gaps.forget_chain(key)
        self.isolation.give_up(key)

    def repair_gap(self, key: ChainKey, now: float) -> None:
        """Ask a source for the gaps of a chain, or give them up."""
        chain = self.ingest.chains.get(key)
        if chain is None:
            self.gaps.forget_chain(key)
        elif not self.gaps.ask_sources(chain, now):
            if self.gaps.is_unanswered(key):
                self.lazy.hurry(now)
                self.isolation.note_unfilled(key, self.gaps.missing(key), now)
        else:
            self.isolation.give_up(key)
            self._give_up_hearsay(chain)
            self._give_up(chain, chain.missing(), Reason.GAP_UNFILLED, now)

    def repair_waiting_gaps(self, now: float) -> None:
        """Ask for the gaps of the chains whose turn it is."""
        for key in self.gaps.take_turns(now):
            self.repair_gap(key, now)

    def _give_up_hearsay(self, chain: Chain) -> None:
        """Stop waiting for announced events that nobody could show; tell subscriptions of promised ones.

        Peers say that they exist, and may have invented them. Only the device itself is believed.
        """
        claims = chain.claims or {}
        hearsay = chain.forget_hearsay()
        if hearsay is None:
            return
        first, last = hearsay
        claims = {peer: claim for peer, claim in claims.items() if claim >= first}
        for peer in claims or (None,):
            self._record_dropped(chain, first, last, Reason.GAP_UNFILLED, "hearsay", peer)
            if peer is not None:
                self._out.blame(peer, Reason.GAP_UNFILLED)
        if first > chain.promised:
            return
        card = self._context.cards.find(chain.author, chain.device)
        own_word = None if card is None else claims.get(card.device_key)
        if own_word is not None:
            self.gaps.lost += own_word - first + 1
        last, claimants = (own_word, 0) if own_word is not None else agreed_end(claims.values() or (last,))
        if own_word is None and claimants < 2 * chain.doubted_by:
            return  # Subscriptions know that some say so: it is no news that they still do, or say more.
        chain.doubted_by = claimants
        told = Missed(self.topic, chain.author, chain.device, first, last, Reason.GAP_UNFILLED, claimants)
        self.readers.tell_missed(told)
        if own_word is not None and not len(chain.seen):
            # Live events may still begin the chain earlier; no subscription is told of the same range twice.
            chain.rebase(last + 1)
            chain.told = last + 1

    def _record_dropped(
        self,
        chain: Chain,
        first: int,
        last: int,
        reason: Reason,
        note: str | None = None,
        peer: PeerId | None = None,
    ) -> None:
        events = min(last - first + 1, LARGEST_COUNT)
        self._out.record(
            Record(
                Kind.DROPPED, self.topic, None, chain.device, first, events, peer, reason=reason, note=note
            )
        )

    def _give_up(self, chain: Chain, ranges: list[tuple[int, int]], reason: Reason, now: float) -> None:
        """Report ranges that nobody could provide as missed, and go on behind them."""
        for first, last in ranges:
            self._record_dropped(chain, first, last, reason)
            if self.keeps:
                self.keeper.note_hole(chain.key, last + 1)
            missed = Missed(self.topic, chain.author, chain.device, first, last, reason)
            self.readers.tell_missed(missed)
            self._hand_in_turn(chain, chain.forgo(first, last), None, now)

    def _let_go_of_early(self, now: float) -> None:
        """While units that wait for earlier ones take too much memory, give up what the most of them need."""
        while (chain := self.ingest.find_greediest()) is not None:
            if chain.held:
                self.release_held(now)
                continue
            gap = chain.first_gap
            if gap is None:
                return  # It waits for nothing, so there is nothing to give up.
            self._give_up(chain, [gap], Reason.QUEUE_FULL, now)

    def leave(self, now: float) -> None:
        """Leave the stream: stop every timer and release every link."""
        self.checks.stop(now)
        self.publisher.leave()
        self.lazy.stop()
        self.inspection.stop()
        self.announcements.stop()
        self.gaps.stop()
        self.opening.stop()
        self.acknowledgements.stop()
        self.anchor.release()

    def handle_revoked(self, peer: PeerId, revocation: Revocation) -> None:
        """Take in a person's revocation of a device, and pass it on if it is news."""
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
        self.spread_revocation(revocation, peer)

    def spread_revocation(self, revocation: Revocation, source: PeerId | None) -> None:
        """Tell the neighbours and the lazy peers, except the source, of a revocation."""
        self.announcements.send_revocation(revocation, source, self.lazy.everyone)

    def send_backlog(self, now: float) -> None:
        """Send neighbours the units that we or our clients published while there was no neighbour."""
        if self.stores and self.flood.is_alone:
            return
        served = tuple(peer for peer, each in self.flood.neighbors.items() if each.is_served)
        for verified in self.publisher.take_backlog():
            unit = verified.unit
            is_ours = unit.device == self._context.device
            card = self._context.cards.current_card(unit.author, unit.device) or self._context.card
            sources = () if is_ours else served
            self.flood.spread(verified, card, sources, 1 + (not is_ours), 0, now, self._out)

    def handle_page(self, peer: PeerId, page: HistoryPage, now: float) -> None:
        """Hand a page of history to the subscription that asked for it."""
        if peer not in self.storage and peer != self._context.peer:
            return
        good, errors = self.ingest.check_all(page.units, page.cards, None)
        for error in errors:
            self._reject_page(peer, error)
        self.opening.read(good, now)
        self.readers.take_page(peer, page, [self._context.doubt(each, now) for each in good])
        self.opening.look_for_keys(now)

    def handle_receipt(self, peer: PeerId, receipt: Confirmation, now: float) -> None:
        """Learn from a receipt how far a receiver has the chains; as a storage node, pass the receipt on."""
        signer = signer_of(receipt)
        if self.checks.is_wrong(signer):
            self.checks.reject(signer)
            return
        try:
            news = self.publisher.ledger.learn(receipt, now, counts=signer in self.storage)
        except RemoteError as error:
            self._reject_page(peer, error)
            return
        if not news:
            return
        if isinstance(receipt, Kept) and not self.checks.note_statement(receipt, now):
            self._leave_out(signer, now)
            return
        self.publisher.handle_receipt(receipt)
        if self.stores:
            self.keeper.pass_on_receipt(receipt, peer)

    def handle_kept(self, peer: PeerId, kept: Kept, now: float) -> None:
        """Take in the statement of a storage node: a receipt, or the answer to a reader's question."""
        if not kept.request:
            self.handle_receipt(peer, kept, now)
            return
        if kept.keeper not in self.storage or (kept.keeper != peer and not self._may_testify(peer)):
            record = Record(Kind.REJECTED, self.topic, peer=peer, reason=Reason.STALE, note="statement")
            self._out.record(record)
            return
        try:
            check_kept(kept)
        except RemoteError as error:
            self._reject_page(peer, error)
            return
        if not self.checks.note_statement(kept, now):
            self._leave_out(kept.keeper, now)
        elif kept.keeper == peer:
            self.readers.take_kept(peer, kept)
        elif self.stores:
            self._pass_on_testimony(peer, kept, now)

    def _pass_on_testimony(self, peer: PeerId, kept: Kept, now: float) -> None:
        """Show publishers what a storage node told a reader, once a second for each storage node."""
        if abs(now - self._testified.get(kept.keeper, -inf)) < _TESTIMONY_PAUSE:
            record = Record(Kind.DROPPED, self.topic, peer=peer, reason=Reason.TOO_MANY, note="statement")
            self._out.record(record)
            return
        self._testified = {each: at for each, at in self._testified.items() if each in self.storage}
        self._testified[kept.keeper] = now
        self.keeper.pass_on_receipt(kept, peer)

    def _may_testify(self, peer: PeerId) -> bool:
        """Return whether a peer may show us what a storage node has told it.

        Readers show it to storage nodes, and these to publishers.
        """
        return self.stores or peer in self.storage

    def handle_shown(self, peer: PeerId, shown: Shown, now: float) -> None:
        """Judge what a storage node shows of what it has confirmed."""
        if self.checks.handle_shown(peer, shown, now):
            self._leave_out(peer, now)

    def handle_contradiction(self, peer: PeerId, proof: Contradiction, now: float) -> None:
        """Take in the proof of a neighbour against a storage node."""
        if self.checks.handle_contradiction(peer, proof, now):
            self._leave_out(proof.kept.keeper, now)

    def ask_anchor(self, now: float) -> None:
        """Ask a storage node once which chains exist, so that nothing is missed from now on."""
        if self.ingest.anchored or self.stores or not self.storage or not self.readers:
            return
        if self.anchor.peer is not None:
            return
        self._consult(tuple(self.storage.values()), now)

    def _consult_another(self, now: float) -> None:
        """Where all of the stream is wanted, ask all storage nodes which chains exist: one may hide some."""
        if not self.ingest.wants_all or self.stores or self.anchor.peer is not None:
            return
        left = tuple(node for peer, node in self.storage.items() if peer not in self._consulted)
        if left:
            self._consult(left, now)

    def _consult(self, nodes: tuple[Contact, ...], now: float) -> None:
        peer = self.anchor.hold_one(nodes)
        self._consulted[peer] = None
        if len(self._consulted) > _CONSULTED:
            del self._consulted[next(iter(self._consulted))]
        if peer in self._context.links:
            self.announcements.send_heads(peer, self.keeps, now)

    def evict(self, now: float) -> None:
        """Evict events that are too old or too many, unless a durable subscription may still read them."""
        self.keeper.evict(not self.stores and has_cursor(self._context.store.cells, self.topic), now)

    def acknowledge(self, now: float) -> None:
        """Send a storage node a receipt for what this device has received of the stream."""
        self.acknowledgements.acknowledge(self.ingest.chains, now)

    def change_anchor(self, now: float) -> None:
        """Release the anchor, which took too long, and ask another storage node if one is still needed."""
        self.anchor.release()
        self.ask_anchor(now)
        self._consult_another(now)

    def handle_policy(self, peer: PeerId, message: PolicyIs) -> None:
        """Take the owner's policy from a neighbour, and pass it on to the others if it is news."""
        if message.unit == self.governance.unit:
            return
        try:
            # A policy outlives its device's card, but not the owner's revocation of the device.
            verified, card = self.ingest.check(message.unit, message.card, None)
            if self._context.cards.revocation_of(card.person, card.device) is not None:
                raise InvalidEvent(Reason.CARD_REVOKED, "the owner revoked this device")
        except RemoteError as error:
            self._reject(peer, message.unit, error)
            return
        if self.governance.read(verified):
            self.announcements.send_policy(other for other in self.flood.neighbors if other != peer)
