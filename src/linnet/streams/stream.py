"""One stream at one node: what comes in, goes on, is kept, and is handed to subscriptions.

The parts do the work; this is where they meet. Flooding and live delivery promise nothing and
wait for nothing; what is written and then promised travels in `AfterCommit`.
"""

from __future__ import annotations

from linnet.core.effects import AfterCommit, Blame, HangUp, Send
from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.limits import CHAINS_PER_MESSAGE, LARGEST_COUNT
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.delivery.archive import Archive
from linnet.delivery.chain import Chain
from linnet.delivery.context import Context
from linnet.delivery.flood import Flood, unit_bytes, unit_record
from linnet.delivery.gaps import Gaps
from linnet.delivery.items import Missed
from linnet.delivery.messages import ChainPlace, Data, Heads, HistoryPage, Receipt, Resend, Resent
from linnet.delivery.suppression import Suppression
from linnet.event.event import Unverified, Verified
from linnet.identity.cards import Card, Revocation
from linnet.streams.anchor import Anchor
from linnet.streams.announcing import ANSWERS, UNHEARD, Announcing
from linnet.streams.confirming import Confirming
from linnet.streams.due import Due
from linnet.streams.effects import StreamEffect, StreamPromise
from linnet.streams.intake import Intake
from linnet.streams.keeper import Keeper
from linnet.streams.messages import PolicyIs
from linnet.streams.names import owner_of, topic_of
from linnet.streams.options import StorageRule
from linnet.streams.policy import Governance
from linnet.streams.publishing import Publishing
from linnet.streams.readers import Readers
from linnet.streams.sealed.opening import Opening
from linnet.streams.sealed.sealed import Sealed
from linnet.trace.records import Kind, Record


class Stream:
    """One stream at one node."""

    def __init__(self, name: str, context: Context) -> None:
        self.name = name
        self.topic: TopicId = topic_of(name)
        self._context = context
        cells = context.store.cells
        self.governance = Governance(self.topic, owner_of(name), cells)
        self.archive = Archive(self.topic, context.store, context.cards, context.config)
        self.intake = Intake(self.topic, context, self.governance)
        self.flood = Flood(self.topic)
        self.gaps = Gaps(self.topic, context.config, context.links)
        self.keeper = Keeper(self.topic, context, self.archive)
        self.publishing = Publishing(self.topic, context, self.archive)
        self.sealed = Sealed(self.topic, context, self.governance)
        self.readers = Readers(self.topic, context, self.governance.owner, self.sealed.open)
        self.opening = Opening(self.topic, context, self.gaps, self.sealed.following, self.readers)
        self.confirming = Confirming(self.topic, context)
        self.is_unreachable = False
        """Whether it was told that nobody can dial this node and nobody is there whom it could."""
        self.stores = False
        """Whether this node keeps the stream for others."""
        self.storage: dict[PeerId, Contact] = {}
        self.suppression = Suppression(self.topic, self.flood, context.config.suppress)
        self.announcing = Announcing(
            self.topic, context, self.flood, self.intake, self.archive, self.governance, self._reading_since
        )
        self.due = Due(self.intake, self.archive, self.readers, self.announcing)
        self.anchor = Anchor(self.topic, context)
        self.intake.restore_own()
        self.received = 0
        self.duplicates = 0
        self.rejected = 0

    @property
    def keeps(self) -> bool:
        """Whether everything of this stream is written to the log."""
        return self.stores or self.readers.durable

    # What neighbours send.

    def on_data(self, peer: PeerId, data: Data, now: float) -> list[StreamEffect]:
        """A unit on its way through the overlay."""
        unit = data.unit
        beyond = self.flood.heard(peer)
        if self.intake.is_duplicate(unit):
            return self._on_duplicate(peer, unit, data.hops, beyond)
        try:
            verified, card = self.intake.check(unit, data.card, now)
            return self._take(verified, card, peer, data, now)
        except RemoteError as error:
            return self._reject(peer, unit, error)

    def _on_duplicate(self, peer: PeerId, unit: Unverified, hops: int, beyond: int) -> list[StreamEffect]:
        count = len(unit.tails)
        self.duplicates += count
        if self.suppression:
            self.suppression.heard(unit, peer)
        size = unit_bytes(unit)
        record = Record(Kind.DUPLICATE, self.topic, None, unit.device, unit.seq, count, peer, hops, size)
        if beyond > self._context.config.replay_slack:
            return [record, HangUp(peer, Reason.REPLAYING)]
        return [record]

    def _reject(self, peer: PeerId, unit: Unverified, error: RemoteError) -> list[StreamEffect]:
        self.rejected += len(unit.tails)
        record = Record(
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
        return [record, Blame(peer, error.reason)]

    def _take(
        self, verified: Verified, card: Card, peer: PeerId, data: Data, now: float
    ) -> list[StreamEffect]:
        """A new unit: pass it on, hand it over, write it down, look for what is missing before it."""
        chain, due, lost = self.intake.accept(verified, now, live=True)
        unit = verified.unit
        count = len(unit.tails)
        hops = data.hops
        self.received += count
        self.flood.distinct += 1
        effects: list[StreamEffect] = [
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
        ]
        age_us = data.age_us + max(0, int(now * 1_000_000) - data.sent_us)
        effects += self.suppression.spread(verified, card, peer, hops + 1, age_us, now)
        if self.stores and self.flood.is_served(peer) and self.flood.is_alone:
            effects += self.publishing.alone(verified)
        effects += self._arrived(chain, verified, due, hops, now)
        if lost is not None:
            effects += self._give_up(chain, [lost], Reason.TOO_MANY, now)
        return effects

    def _arrived(
        self, chain: Chain, verified: Verified, due: list[Verified], hops: int | None, now: float
    ) -> list[StreamEffect]:
        """What every accepted unit brings about here, however it came."""
        effects: list[StreamEffect] = []
        if self.governance.owner is not None:
            if self.governance.read(verified):
                effects += self.announcing.policy(self.flood.neighbors)
            effects += self.opening.read((verified,), now)
        if self.readers.unordered:
            said_at = chain.moments.at(verified.unit.seq or 0) if hops is None else None
            effects += self.readers.hand(self.readers.unordered, verified, hops, said_at)
        if due:
            effects += self._in_turn(chain, due, hops, now)
        if not due or self.gaps.open:
            effects += self.gaps.changed(chain)
            if chain.early > self._context.config.gaps_open:
                effects += self._give_up(chain, chain.missing()[:1], Reason.QUEUE_FULL, now)
        effects += self.announcing.news(chain)
        return effects if self.governance.owner is None else [*effects, *self.opening.look(now)]

    def _in_turn(self, chain: Chain, due: list[Verified], hops: int | None, now: float) -> list[StreamEffect]:
        """Units whose turn has come: into the log, then to those who asked for order."""
        if not due:
            return []
        effects: list[StreamEffect] = []
        moments = chain.moments if hops is None else None
        if not self.keeps:
            for verified in due:
                said_at = None if moments is None else moments.at(verified.unit.seq or 0)
                effects += self.readers.hand(self.readers.ordered, verified, hops, said_at)
            return effects
        promises: list[StreamPromise] = []
        for verified in due:
            said_at = None if moments is None else moments.at(verified.unit.seq or 0)
            if said_at is not None:
                self.readers.older(verified, said_at)
            position = self.archive.keep(verified, now)
            if position is not None:
                promises += self.readers.logged(position, verified, hops)
                promises.append(unit_record(Kind.STORED, verified))
            effects += self.readers.hand(self.readers.ordered, verified, hops, said_at)
        if promises:
            effects.append(AfterCommit(tuple(promises)))
        return [*effects, *self.keeper.advanced(chain), *self.keeper.wrote()]

    # Neighbours, and what they know.

    def neighbor_up(self, peer: PeerId, now: float) -> list[StreamEffect]:
        """A neighbour is there: tell it how far we know the chains, and the policy."""
        self.flood.up(peer)
        return [*self.announcing.greet(peer, self.keeps, now), *self.backlog(now)]

    def neighbor_down(self, peer: PeerId) -> None:
        """A neighbour is gone."""
        self.flood.down(peer)
        self.announcing.left(peer)

    def on_heads(self, peer: PeerId, heads: Heads, now: float) -> list[StreamEffect]:
        """Somebody says how far the chains go; what we lack of them is missing."""
        storage = peer in self.storage
        effects: list[StreamEffect] = [*self.due.hear_out(peer, heads, self.keeps, now)]
        final, answers = self.due.is_final(heads), heads.due or ()
        for number, place in enumerate(heads.chains):
            first_due = min(answers[number], place.last + 1) if number < len(answers) else None
            try:
                if first_due is not None:
                    effects += self._settle(place, first_due, now)
                chain, due = self.intake.announced(place, storage, first_due)
            except RemoteError as error:
                record = Record(
                    Kind.REJECTED, self.topic, device=place.device, peer=peer, reason=error.reason
                )
                return [*effects, record, Blame(peer, error.reason)]
            self.due.answered(peer, place, first_due)
            if place.held:
                self.gaps.holder(peer, place.author + place.device)
            if final:
                self.due.remember(place)
            if chain is not None:
                effects += self._in_turn(chain, due, None, now)
                effects += self.gaps.changed(chain)
        self.announcing.shown(peer, heads)
        is_last = len(heads.chains) < CHAINS_PER_MESSAGE
        if heads.waited_ms or (self.stores and not storage and peer not in self.flood.neighbors):
            effects += self.announcing.heads(peer, self.keeps, now)
        if storage and final and is_last and not self.intake.anchored:
            self.intake.anchored = True
            effects += [*self.readers.anchored(), *self.anchor.weigh()]
        if final and is_last and self.due.is_answered(peer):
            effects += self.release(now)
        return effects

    def release(self, now: float) -> list[StreamEffect]:
        """Nobody is about to answer any more: what was held gets its turn."""
        effects: list[StreamEffect] = []
        for chain, due in self.intake.release():
            effects += [*self._in_turn(chain, due, None, now), *self.gaps.changed(chain)]
        return effects

    def _settle(self, place: ChainPlace, first: int, now: float) -> list[StreamEffect]:
        """Somebody says that a chain was said in our time from this number on: it is due from there."""
        if self.intake.wants_all:
            self.readers.due_from(place.author + place.device, first)
        chain, lost = self.due.settle(place, first)
        if chain is None:
            return []
        return [*self._give_up(chain, lost, Reason.GAP_UNFILLED, now), *self.gaps.changed(chain)]

    def _reading_since(self) -> float | None:
        """Since when somebody here reads who wants only what is said from then on."""
        return self.readers.since

    def announcing_fired(self, tick: Tick, now: float) -> list[StreamEffect]:
        """It is time to tell neighbours something, or nobody is waited for any more."""
        if tick.what == ANSWERS:
            return self.release(now)
        tell = self.announcing.repeat if tick.what == UNHEARD else self.announcing.fired
        return [*tell(self.keeps, now)]

    def ask_neighbors(self, now: float) -> list[StreamEffect]:
        """Somebody reads here now: let neighbours know, so that they tell what is due since."""
        if not self.announcing.asks:
            return []
        peers = [peer for peer in self.flood.neighbors if not self.announcing.has_asked(peer)]
        return [effect for peer in peers for effect in self.announcing.heads(peer, self.keeps, now)]

    def on_storage(self, nodes: tuple[Contact, ...], now: float) -> list[StreamEffect]:
        """The tracker says who keeps this stream."""
        ours = self._context.peer
        self.storage = {node.peer: node for node in nodes if node.peer != ours}
        others = tuple(self.storage.values())
        self.publishing.none_since = None if others else now
        self.confirming.storage(others)
        self.opening.storage(self.storage)
        mine = (Contact(ours),) if self.stores else ()
        effects: list[StreamEffect] = [*self.gaps.storage(others), *self.publishing.storage(others)]
        return [*effects, *self.readers.storage((*mine, *others)), *self.cast_anchor(now)]

    def alone(self) -> list[StreamEffect]:
        """Nothing leads to anybody else: whoever waits for storage nodes need not."""
        return [*self.publishing.alone_here(), *self.readers.alone()]

    def keep(self, rule: StorageRule) -> list[StreamEffect]:
        """Keep this stream for others, going on from what the log holds."""
        kept, self.stores = self.keeps, True
        self.intake.wants_all = True
        repairs: list[StreamEffect] = []
        if not kept:
            self.readers.go_back(self.intake.restore())
            for chain in self.intake.chains.values():
                repairs += self.gaps.changed(chain)
        self.keeper.retention, self.keeper.quota = rule.retention, rule.quota
        # Our own subscribers need nobody else for history.
        return [*self.readers.storage((Contact(self._context.peer),)), *repairs, *self.keeper.wrote()]

    def link_up(self, peer: PeerId, now: float) -> list[StreamEffect]:
        """A link is open, to a storage node of this stream perhaps."""
        if peer not in self.storage:
            return []
        effects: list[StreamEffect] = [*self.gaps.up(peer), *self.publishing.up(peer), *self.readers.up(peer)]
        return [*effects, *self.confirming.up(peer), *self.announcing.heads(peer, self.keeps, now)]

    def link_down(self, peer: PeerId) -> None:
        """A link is gone."""
        self.flood.unlinked(peer)
        self.gaps.down(peer)
        self.keeper.down(peer)
        self.announcing.unlinked(peer)

    # Gaps.

    def on_resent(self, peer: PeerId, resent: Resent, now: float) -> list[StreamEffect]:
        """What somebody holds of a range that we asked for."""
        # Who keeps the stream may show what was said by devices that are expired or revoked since.
        judged_at = None if peer in self.storage else now
        good, errors = self.intake.check_all(resent.units, resent.cards, judged_at)
        effects: list[StreamEffect] = [
            effect for error in errors for effect in self._reject_page(peer, error)
        ]
        effects += self.opening.read(good, now)
        self.due.look_back(resent.author + resent.device, now)
        ages = {unit.sig: age for unit, age in zip(resent.units, resent.ages_ms, strict=False)}
        for verified in good:
            if self.intake.is_duplicate(verified.unit):
                continue
            try:
                age_ms = ages.get(verified.unit.sig)
                # An author's clock may be wrong; without a better word it is all there is.
                said_at = verified.events[-1].tail.time / 1000 if age_ms is None else now - age_ms / 1000
                chain, due, _ = self.intake.accept(verified, min(said_at, now), now=now)
            except RemoteError as error:
                effects += self._reject(peer, verified.unit, error)
                continue
            unit = verified.unit
            self.received += len(unit.tails)
            self.flood.distinct += 1
            effects.append(
                Record(Kind.RESYNC, self.topic, verified.head, unit.device, unit.seq, len(unit.tails), peer)
            )
            effects += self._arrived(chain, verified, due, None, now)
        asked = self.intake.chains.get(resent.author + resent.device)
        if asked is not None:
            self.due.note_late(asked, self.keeps, now)
            effects += self.gaps.answered(asked, resent.done)
        return effects

    def resend(self, peer: PeerId, request: Resend, now: float) -> list[Send[Resent]]:
        """What this node holds of a range that somebody asks for."""
        chain = self.intake.chains.get(request.author + request.device)
        return self.archive.resend(peer, request, now, chain)

    def _reject_page(self, peer: PeerId, error: RemoteError) -> list[StreamEffect]:
        self.rejected += 1
        record = Record(Kind.REJECTED, self.topic, peer=peer, reason=error.reason, note=error.detail)
        return [record, Blame(peer, error.reason)]

    def gap_fired(self, key: bytes, now: float) -> list[StreamEffect]:
        """It is time to ask for what is missing of a chain, or to give it up."""
        chain = self.intake.chains.get(key)
        if chain is None:
            return [*self.gaps.forget(key)]
        effects, give_up = self.gaps.fired(chain, now)
        if not give_up:
            return [*effects]
        return [
            *effects,
            *self._give_up_hearsay(chain),
            *self._give_up(chain, chain.missing(), Reason.GAP_UNFILLED, now),
        ]

    def _give_up_hearsay(self, chain: Chain) -> list[StreamEffect]:
        """Stop waiting for what was announced and never shown. Whoever was promised it is told."""
        hearsay = chain.forget_hearsay()
        if hearsay is None:
            return []
        first, last = hearsay
        effects: list[StreamEffect] = [self._dropped(chain, first, last, Reason.GAP_UNFILLED, "hearsay")]
        if first > chain.promised:
            return effects
        told = Missed(self.topic, chain.author, chain.device, first, last, Reason.GAP_UNFILLED)
        effects += self.readers.missed(told)
        if not len(chain.seen):
            # What comes live all the same begins earlier; nobody is told of the same twice.
            chain.rebase(last + 1)
            chain.told = last + 1
        return effects

    def _dropped(
        self, chain: Chain, first: int, last: int, reason: Reason, note: str | None = None
    ) -> Record:
        events = min(last - first + 1, LARGEST_COUNT)
        return Record(Kind.DROPPED, self.topic, None, chain.device, first, events, reason=reason, note=note)

    def _give_up(
        self, chain: Chain, ranges: list[tuple[int, int]], reason: Reason, now: float
    ) -> list[StreamEffect]:
        """Say what could not be had, and go on behind it."""
        effects: list[StreamEffect] = []
        for first, last in ranges:
            effects.append(self._dropped(chain, first, last, reason))
            effects += self.readers.missed(
                Missed(self.topic, chain.author, chain.device, first, last, reason)
            )
            effects += self._in_turn(chain, chain.forgo(first, last), None, now)
        return effects

    def leave(self) -> list[StreamEffect]:
        """The node leaves the stream: stop every timer and let go of every link."""
        effects: list[StreamEffect] = [*self.publishing.leave(), *self.announcing.stop()]
        effects += [*self.gaps.stop(), *self.opening.stop()]
        return [*effects, *self.confirming.stop(), *self.anchor.weigh()]

    def on_revoked(self, peer: PeerId, revocation: Revocation) -> list[StreamEffect]:
        """A person's word that a device is theirs no longer: take it and pass it on, if it is news."""
        try:
            news = self._context.cards.revoke(revocation)
        except RemoteError as error:
            return self._reject_page(peer, error)
        if not news:
            return []
        self.sealed.note_revocation()
        record = Record(Kind.CONTROL, self.topic, device=revocation.device, peer=peer, note="device revoked")
        return [record, *self.announcing.revocation(revocation, peer)]

    def backlog(self, now: float) -> list[StreamEffect]:
        """What was published, here or by those whom we serve, while there was nobody to send it to."""
        if self.stores and self.flood.is_alone:
            return []
        served = tuple(peer for peer, each in self.flood.neighbors.items() if each.is_served)
        effects: list[StreamEffect] = []
        for verified in self.publishing.take_backlog():
            unit = verified.unit
            is_ours = unit.device == self._context.device
            card = self._context.cards.shown(unit.author, unit.device) or self._context.card
            effects += self.flood.spread(verified, card, () if is_ours else served, 1 + (not is_ours), 0, now)
        return effects

    def on_page(self, peer: PeerId, page: HistoryPage, now: float) -> list[StreamEffect]:
        """A page of history for a subscription."""
        if peer not in self.storage and peer != self._context.peer:
            return []
        good, errors = self.intake.check_all(page.units, page.cards, None)
        effects = [effect for error in errors for effect in self._reject_page(peer, error)]
        effects += self.opening.read(good, now)
        return [*effects, *self.readers.page(peer, page, good), *self.opening.look(now)]

    def on_receipt(self, peer: PeerId, receipt: Receipt, now: float) -> list[StreamEffect]:
        """A receiver says how far it has the chains; publishers learn it, storage nodes pass it on."""
        try:
            news = self.publishing.ledger.learn(receipt, now)
        except RemoteError as error:
            return self._reject_page(peer, error)
        if not news:
            return []
        effects: list[StreamEffect] = [*self.publishing.receipt(receipt)]
        return [*effects, *self.keeper.pass_on(receipt, peer)] if self.stores else effects

    def cast_anchor(self, now: float) -> list[StreamEffect]:
        """Learn from a storage node which chains there are, once, so that nothing is missed from now on."""
        if self.intake.anchored or self.stores or not self.storage or not self.readers:
            return []
        if self.anchor.peer is not None:
            return []
        peer, effects = self.anchor.cast(self.storage.values())
        told = self.announcing.heads(peer, self.keeps, now) if peer in self._context.links else []
        return [*effects, *told]

    def anchor_fired(self, now: float) -> list[StreamEffect]:
        """The storage node took too long: ask again, perhaps another."""
        return [*self.anchor.weigh(), *self.cast_anchor(now)]

    def on_policy(self, peer: PeerId, message: PolicyIs) -> list[StreamEffect]:
        """A neighbour shows the owner's policy."""
        if message.unit == self.governance.unit:
            return []
        try:
            # A policy outlives its device's card, but not the owner's word that the device is lost.
            verified, card = self.intake.check(message.unit, message.card, None)
            if self._context.cards.revocation_of(card.person, card.device) is not None:
                raise InvalidEvent(Reason.CARD_REVOKED, "the owner revoked this device")
        except RemoteError as error:
            return self._reject(peer, message.unit, error)
        if not self.governance.read(verified):
            return []
        return [*self.announcing.policy(other for other in self.flood.neighbors if other != peer)]
