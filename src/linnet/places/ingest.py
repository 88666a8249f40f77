"""What comes in: every fragment is checked, put into the line, written down, passed on and told.

From whomever it comes, be it ourselves. Nothing is passed on before its signature was checked, and to
nobody who may not see it (Toth 2013, section 3.7).
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from linnet.core.effects import AfterCommit, Send
from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.ids import EventId, PeerId
from linnet.core.limits import LARGEST_COUNT
from linnet.core.reasons import Reason
from linnet.delivery.messages import MAX_HOPS, Data
from linnet.event.event import Unverified, Verified
from linnet.event.signing import unit_head
from linnet.identity.cards import Card
from linnet.machine.outbox import Outbox, Promise
from linnet.places.channel.fragment_store import Conflict, Mark, New, Row
from linnet.places.channel.reassembly import Began, Broken, Finished, Step
from linnet.places.channel.retention import ORPHANS, forget_orphans
from linnet.places.channel.state_order import Applied, Forked, NotTaken, Outcome, Rebuilt
from linnet.places.items import Changed
from linnet.places.multicast.fragmentation import KEYS, OPENING, Change, Head, head_of
from linnet.places.multicast.terms import Shift, Where, opening_of
from linnet.places.place_setup import Parts
from linnet.places.subscriber import Subscribers
from linnet.trace.records import Kind, Record

WAITING = 1024
"""Fragments of terms that are not known yet that are held at once."""

LATELY = 256
"""Fragments that are known again without looking into the log."""

DURABLE: AfterCommit[Promise] = AfterCommit(())
"""What was written is to be durable soon, also where nobody is promised anything."""


class Arrival(Struct, frozen=True, gc=False):
    """A fragment that was checked, and how it came."""

    verified: Verified
    head: Head
    card: Card
    source: PeerId | None
    """None: we said it."""
    hops: int
    age_us: int


class Ingest:
    """The way in of one place."""

    def __init__(self, parts: Parts, subscribers: Subscribers, out: Outbox) -> None:
        self._parts = parts
        self._subscribers = subscribers
        self._out = out
        self._waiting: dict[bytes, Arrival] = {}
        """Fragments whose term is not known yet."""
        self._lately: dict[EventId, int] = {}
        """The fragments that came last, by their numbers: most come again, by another way."""
        self._cards: dict[tuple[PeerId, bytes], Card] = {}
        """The card of each device that a downstream had from us."""
        self.lost_state = False
        """Whether our state has to be asked for: we cannot tell it from what we have."""
        self.puzzled: dict[PeerId, None] = {}
        """Who brought fragments of terms that are not known here."""
        self.cut_off = False
        """Whether something that this device said was taken out of the line."""
        self.started_over = False
        """Whether the line that we were let into is not the one that counts: we have to come in anew."""
        self._changed = False

    def take(
        self, unit: Unverified, card: Card | None, source: PeerId | None, hops: int, age_us: int, now: float
    ) -> Reason | None:
        """Take a fragment from a peer, live or replayed; what was wrong with it, None if it was good."""
        before = self._out.mark()
        try:
            event = unit_head(unit)
            if event in self._waiting or self._is_in_line(event):
                self._out.record(Record(Kind.DUPLICATE, self._parts.id, event, peer=source))
                return None
            verified, known = self._check(unit, card, now)
            head = head_of(verified.events[0])
            self._place(Arrival(verified, head, known, source, hops, age_us), now)
        except RemoteError as error:
            self._out.forget_since(before)
            note, reason = error.detail[:200], error.reason
            self._out.record(Record(Kind.REJECTED, self._parts.id, peer=source, reason=reason, note=note))
            if source is not None:
                self._out.blame(source, reason)
            return reason
        return None

    def take_own(self, spoken: Iterable[tuple[Verified, Head]], now: float) -> None:
        """Take fragments that this device just signed."""
        card = self._parts.context.card
        for verified, head in spoken:
            self._place(Arrival(verified, head, card, None, 0, 0), now)

    def drop_neighbor(self, peer: PeerId) -> None:
        """Forget a neighbour that is gone: it is told cards anew when it comes back."""
        parts = self._parts
        parts.relay_filter.leave(peer)
        parts.relay_filter_up.leave(peer)
        parts.tree.disconnect(peer)
        parts.fragment_repair.disconnect(peer)
        if parts.toward == peer:
            parts.toward = None
        for key in [key for key in self._cards if key[0] == peer]:
            del self._cards[key]

    def _is_in_line(self, event: EventId) -> bool:
        number = self._lately.get(event)
        row = None if number is None else self._parts.fragments.get(number)
        return (row is not None and row.event == event) or self._parts.is_in_line(event)

    def _check(self, unit: Unverified, card: Card | None, now: float) -> tuple[Verified, Card]:
        context, deed = self._parts.context, self._parts.deed
        if unit.topic != self._parts.id or unit.seq is None or len(unit.tails) != 1:
            raise InvalidEvent(Reason.MALFORMED, "not a fragment of this place")
        if not deed.knew(unit.author) and not self._has_spoken(unit):
            raise InvalidEvent(Reason.NOT_A_PUBLISHER, "the deed does not let this person speak")
        if card is not None and card is not context.cards.find(unit.author, unit.device):
            context.cards.learn(card)
        # Fragments are history as soon as they are said: a card that ended since does not undo them.
        known = context.cards.card_for(unit.author, unit.device, None)
        return context.verify(unit, known), known

    def _has_spoken(self, unit: Unverified) -> bool:
        return any(each.person == unit.author for each in self._parts.terms.openings)

    def _place(self, arrival: Arrival, now: float) -> None:
        parts = self._parts
        verified, head = arrival.verified, arrival.head
        device = verified.unit.device
        if head.flags & OPENING:
            self._open_term(arrival, now)
        where = parts.terms.where(head, device, verified.unit.seq)
        if where is not Where.IN_LINE and parts.terms.awaits(verified.head):
            # Beside our line, but another term opens behind it: that may be the one that counts.
            parts.keep_beside(verified, now)
            parts.fragment_repair.handle_found(head.fragment)
            self.shift_line(parts.terms.arrived(verified.head), now)
            where = parts.terms.where(head, device, verified.unit.seq)
        match where:
            case Where.WAITING:
                if parts.keeps:  # nobody told it at a door how far the numbers are
                    parts.fragment_repair.note_number(head.fragment, now)
                self._wait(arrival)
            case Where.ORPHANED:
                note, reason = f"orphaned: fragment {head.fragment} of term {head.term}", Reason.STALE
                self._out.record(Record(Kind.DROPPED, parts.id, verified.head, reason=reason, note=note))
            case Where.IN_LINE:
                self._store(arrival, now)
                self.shift_line(parts.terms.arrived(verified.head), now)
        if self._waiting and self._changed:
            self._retry(now)

    def _open_term(self, arrival: Arrival, now: float) -> None:
        """Take a fragment that opens a term: perhaps the line is another now."""
        parts, unit = self._parts, arrival.verified.unit
        event = arrival.verified.head
        opening = opening_of(arrival.head, unit.author, unit.device, event, unit.seq)
        if parts.terms.equivocated(opening):
            note = f"two openings of term {opening.term}"
            reason = Reason.EQUIVOCATION
            self._out.record(Record(Kind.REJECTED, parts.id, event, unit.device, reason=reason, note=note))
        shift = parts.terms.offer(opening)
        parts.keep_opening(opening)
        self.shift_line(shift, now)
        for number in parts.terms.sought:
            parts.fragment_repair.seek(number)

    def _store(self, arrival: Arrival, now: float) -> None:
        parts = self._parts
        verified, head, source, hops = arrival.verified, arrival.head, arrival.source, arrival.hops
        stored = parts.fragments.store(verified, head, now)
        if isinstance(stored, Conflict):
            if stored.reason is Reason.EQUIVOCATION and source is not None:
                self.puzzled[source] = None  # its device may have had to open this term once more
            raise InvalidEvent(stored.reason, f"fragment {head.fragment} of term {head.term}")
        if not isinstance(stored, New):
            return
        self._lately[verified.head] = head.fragment
        if len(self._lately) > LATELY:
            del self._lately[next(iter(self._lately))]
        parts.fragment_repair.handle_arrival(head, now)
        parts.context.cards.keep(verified.unit.author, verified.unit.device)
        if head.term == parts.term and source is not None:
            parts.toward = source
        if head.change is not None:
            self._note_change(head, head.change)
        steps = [] if parts.keeps else parts.reassembly.told(stored.row)
        kind = Kind.PUBLISHED if source is None else Kind.RECEIVED
        size = len(verified.unit.tails[0])
        self._out.record(
            Record(kind, parts.id, verified.head, verified.unit.device, head.fragment, 1, source, hops, size)
        )
        self._record_noted()
        self._pass_on(arrival, now)
        self._tell(steps, verified)
        if head.flags & KEYS and not parts.keeps:
            self._tell_unlocked(stored.row, now)
        self._record_noted()

    def _note_change(self, head: Head, change: Change) -> None:
        """Note that somebody came in or went. If we came in, perhaps not for the first time, we may have been
        put out without having heard of it: those whom we would ask for what was said meanwhile need not have
        it, and then cannot say that it is closed to us."""
        parts = self._parts
        parts.membership.store(change, head.message, head.generation)
        if not change.joins:
            parts.host_keys.readers.forget(change.nym)
            return
        is_ours = change.nym == parts.context.author and not parts.may_speak
        if is_ours and change.effective_since == head.message:
            parts.close_before(head)

    def _pass_on(self, arrival: Arrival, now: float) -> None:
        """Send a fragment to every downstream that may see it, with the card the first time."""
        verified, head, card = arrival.verified, arrival.head, arrival.card
        unit = verified.unit
        peers = dict.fromkeys(self._parts.relay_filter.find_targets(head, arrival.source))
        if arrival.source is None or arrival.source in self._parts.tree.downstreams:
            # The voice is below us, or is us: those above hear it through us.
            peers.update(dict.fromkeys(self._parts.relay_filter_up.find_targets(head, arrival.source)))
        hops, sent_us = min(arrival.hops + 1, MAX_HOPS), int(now * 1_000_000)
        device = unit.author + unit.device
        promises: list[Promise] = []
        for peer in peers:
            known = self._cards.get((peer, device)) is card
            self._cards[peer, device] = card
            promises.append(Send(peer, Data(unit, hops, arrival.age_us, sent_us, None if known else card)))
            place = (self._parts.id, verified.head, unit.device, head.fragment, 1, peer, hops)
            promises.append(Record(Kind.SENT, *place, len(unit.tails[0])))
        # One promise for all of them, which are many; and where there is nobody what was written is durable.
        self._out.add(AfterCommit(tuple(promises)))

    def _tell(self, steps: list[Step], verified: Verified) -> None:
        """Tell whoever watches what came, and ask for what it rests on."""
        parts = self._parts
        for step in steps:
            if isinstance(step, Began) and step.header.delta is not None:
                outcomes = parts.order.offered(
                    step.message, step.header.delta, step.modifiers, step.header.hash
                )
                self.tell_state(outcomes)
            if isinstance(step, Broken):
                note, reason = f"message {step.message}: {step.detail}"[:200], step.reason
                self._out.record(Record(Kind.REJECTED, parts.id, verified.head, reason=reason, note=note))
            if isinstance(step, Finished):
                event = (parts.id, verified.head, verified.unit.device, step.message, 1)
                self._out.committed.record(Record(Kind.DELIVERED, *event))
        self._subscribers.tell_news(steps, verified.unit.author)
        for message in parts.order.missing[:16]:
            # What is older comes with the whole state, and what is here waits for its key.
            if message >= parts.since and parts.fragments.get_at(message, 0) is None:
                parts.fragment_repair.want(message)

    def _tell_unlocked(self, row: Row, now: float) -> None:
        """Go on with what waited for keys that came."""
        parts = self._parts
        for message in parts.guest_keys.stored(row, parts.may_speak, now):
            first = parts.fragments.get_at(message, 0)
            verified = None if first is None else parts.fragments.verified(first)
            if verified is not None:
                self._tell(list(parts.reassembly.resume(message)), verified)

    def _record_noted(self) -> None:
        noted, self._parts.guest_keys.noted = self._parts.guest_keys.noted, []
        for record in noted:
            self._out.record(record)

    def tell_state(self, outcomes: Iterable[Outcome]) -> None:
        """Tell whoever watches what became of changes of state, and record what went wrong."""
        parts = self._parts
        items: list[Changed] = []
        for outcome in outcomes:
            match outcome:
                case Applied(message, _, changes, _):
                    items += [Changed(parts.id, message, name, value) for name, value in changes.items()]
                    hashed = parts.order.signed == message
                    parts.fragments.mark(message, Mark.APPLIED | (Mark.HASH if hashed else Mark(0)))
                case Rebuilt(message, changes, lost):
                    items += [Changed(parts.id, message, name, value) for name, value in changes.items()]
                    self.lost_state = lost
                case Forked(message, _, _, reason):
                    note = f"message {message} carries another hash of the state"
                    self._out.record(Record(Kind.REJECTED, parts.id, reason=reason, note=note))
                    self.lost_state = True
                case NotTaken(message, reason, detail):
                    note = f"state of message {message}: {detail}"[:200]
                    self._out.record(Record(Kind.REJECTED, parts.id, reason=reason, note=note))
                case _:
                    pass
        self._subscribers.tell_changes(items)

    # Terms.

    def _wait(self, arrival: Arrival) -> None:
        self._waiting[arrival.verified.head] = arrival
        if arrival.source is not None:
            self.puzzled[arrival.source] = None
        if len(self._waiting) > WAITING:
            del self._waiting[next(iter(self._waiting))]
            note = "too many fragments of terms that are not known"
            self._out.record(Record(Kind.DROPPED, self._parts.id, reason=Reason.QUEUE_FULL, note=note))

    def _retry(self, now: float) -> None:
        waiting, self._waiting = self._waiting, {}
        self._changed = False
        for arrival in sorted(waiting.values(), key=lambda each: (each.head.term, each.head.fragment)):
            before = self._out.mark()
            try:
                self._place(arrival, now)
            except RemoteError as error:
                self._out.forget_since(before)
                note = error.detail[:200]
                self._out.record(Record(Kind.REJECTED, self._parts.id, reason=error.reason, note=note))

    def follow_shift(self, now: float) -> None:
        """Follow a newer deed, or what was told at a door: it may have made the line another, also where we
        held nothing of it, and what came before that answer waits."""
        shift, self._parts.shift = self._parts.shift, None
        self.shift_line(shift, now)
        if self._waiting:
            self._retry(now)

    def shift_line(self, shift: Shift | None, now: float) -> None:
        """Undo what was applied behind the cut, if the line is another now, and take what counts again."""
        if shift is None:
            return
        self._changed = True
        parts = self._parts
        held = parts.fragments.standing.fragment >= 0
        is_other = shift.fragment < 0 and (held or shift.anew)
        if parts.terms.is_adrift or (is_other and parts.terms.base is not None):
            self.start_over(now)
            return
        gone = parts.fragments.orphan(shift.fragment, LARGEST_COUNT) if held else []
        if gone:
            self._undo(shift, gone, now)
        self._adopt_orphans(now)

    def start_over(self, now: float) -> None:
        """Forget all that we know: the notice that let us in is not in the line, so nothing of it counts.

        Whoever said it says it again, with another number, and we have to come in by that.
        """
        parts = self._parts
        parts.start_over()
        self.started_over = self._changed = True
        gone = parts.fragments.orphan(-1, LARGEST_COUNT)
        self._undo(Shift(-1, 0), gone, now)
        # Without a line nobody can tell which of it counts again; what does is asked for when we are in.
        self._forget_orphans(0)

    def cut_back(self, now: float) -> None:
        """Go back to what is whole: what is held behind a gap cannot be built on."""
        parts = self._parts
        last = parts.fragments.upto - 1
        gone = parts.fragments.orphan(last, LARGEST_COUNT) if parts.fragments.standing.fragment > last else []
        if gone:
            self._undo(Shift(last, parts.fragments.standing.message), gone, now)

    def _undo(self, shift: Shift, gone: list[Row], now: float) -> None:
        parts = self._parts
        note = f"{len(gone)} fragments behind {shift.fragment} are orphaned by term {parts.term}"
        self._out.record(Record(Kind.DROPPED, parts.id, reason=Reason.STALE, note=note))
        # Whoever cut may count messages that it knew of once: here those stand whose beginning does.
        begun = [row.message - 1 for row in gone if row.is_first]
        last = min([shift.message, *begun])
        parts.fragment_repair.rewind(shift.fragment + 1, last)
        if shift.fragment >= 0:
            parts.fragment_repair.note_number(shift.fragment, now)
        term, told = parts.told
        if term >= parts.term:
            parts.fragment_repair.note_number(told, now)
        parts.toward = None
        parts.membership.undo(last)
        parts.relay_filter.forget()
        parts.relay_filter_up.forget()
        messages = list(dict.fromkeys(row.message for row in gone))
        broken = parts.reassembly.cut(messages)
        self.tell_state(parts.order.rollback(last))
        if parts.order.is_lost:
            self.tell_state(parts.recall_states())
            self.lost_state = parts.order.is_lost
        units = (parts.fragments.unit(row) for row in gone)
        if any(unit is not None and unit.device == parts.context.device for unit in units):
            self.cut_off = True
        self._forget_orphans()
        if messages:
            self._subscribers.take_back(messages, broken)
        self._out.add(DURABLE)

    def _forget_orphans(self, most: int = ORPHANS) -> None:
        for record in forget_orphans(self._parts.fragments, self._parts.context.device, most):
            self._out.record(record)

    def _adopt_orphans(self, now: float) -> None:
        """Store fragments that were orphaned, and are in the line again."""
        parts = self._parts
        for row in parts.fragments.orphans():
            verified = parts.fragments.verified(row)
            if verified is None:
                parts.fragments.forget_orphan(row)
                continue
            head, unit = head_of(verified.events[0]), verified.unit
            card = parts.context.cards.find(unit.author, unit.device)
            if card is not None and parts.terms.where(head, unit.device, unit.seq) is Where.IN_LINE:
                parts.fragments.forget_orphan(row)
                self._store(Arrival(verified, head, card, parts.context.peer, 0, 0), now)
