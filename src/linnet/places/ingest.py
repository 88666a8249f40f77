"""The way in for fragments: checked, put into the line, stored, passed on, and handed to subscribers.

This holds for fragments of peers and our own alike. Nothing is passed on before its signature was checked,
and never to a guest that may not see it (Toth 2013, section 3.7).
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from linnet.core.effects import AfterCommit, Send
from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.ids import DeviceId, EventId, PeerId
from linnet.core.limits import LARGEST_COUNT
from linnet.core.reasons import Reason
from linnet.delivery.messages import MAX_HOPS, Data
from linnet.event.event import Unverified, Verified
from linnet.event.signing import unit_head
from linnet.identity.cards import Card
from linnet.machine.outbox import Promise
from linnet.places.channel.fragment_store import Conflict, Fragments, Mark, New, Row
from linnet.places.channel.packet import Ignored
from linnet.places.channel.reassembly import Began, Broken, Finished, Step
from linnet.places.channel.state_order import Applied, Forked, NotTaken, Outcome, Rebuilt
from linnet.places.items import Changed
from linnet.places.multicast.fragmentation import KEYS, OPENING, Change, Head, head_of
from linnet.places.multicast.terms import Shift, Where, opening_of
from linnet.places.place_setup import Parts
from linnet.places.subscriber import Subscribers
from linnet.trace.records import Kind, Record

WAITING = 1024
"""The most fragments of unknown terms that are held at once."""

ORPHANS = 4096
"""The most orphaned fragments of others that are held, since their term may count again."""
LATELY = 256
"""The most recent fragments that are recognised without looking into the log."""

DURABLE: AfterCommit[Promise] = AfterCommit(())
"""Makes what was written durable soon, even where nobody is promised anything."""


class Arrival(Struct, frozen=True, gc=False):
    """A checked fragment, and how it came."""

    verified: Verified
    head: Head
    card: Card
    source: PeerId | None
    """The peer that sent it; None: it is our own."""
    hops: int
    age_us: int


class Ingest:
    """Takes in the fragments of one place."""

    def __init__(self, parts: Parts, subscribers: Subscribers) -> None:
        self._parts = parts
        self._subscribers = subscribers
        self._waiting: dict[bytes, Arrival] = {}
        """Fragments whose term is not known yet."""
        self._lately: dict[EventId, int] = {}
        """The latest fragments, with their numbers: most come again, by another way."""
        self._cards: dict[tuple[PeerId, bytes], Card] = {}
        """The card that each downstream last got from us, for each device."""
        self.lost_state = False
        """Whether our state has to be asked for, since it does not follow from what we hold."""
        self.puzzled: dict[PeerId, None] = {}
        """Peers that brought fragments of terms that are not known here."""
        self.cut_off = False
        """Whether a message of this device was taken out of the line."""
        self.started_over = False
        """Whether the line that we were let into is not the one that counts: we have to enter anew."""
        self._changed = False

    def take(
        self, unit: Unverified, card: Card | None, source: PeerId | None, hops: int, age_us: int, now: float
    ) -> Reason | None:
        """Take a fragment from a peer, live or replayed; return its fault, None if it was good."""
        before = self._parts.out.mark()
        try:
            event = unit_head(unit)
            if event in self._waiting or self._is_in_line(event):
                self._parts.out.record(Record(Kind.DUPLICATE, self._parts.id, event, peer=source))
                return None
            verified, known = self._check(unit, card, now)
            head = head_of(verified.events[0])
            self._place(Arrival(verified, head, known, source, hops, age_us), now)
        except RemoteError as error:
            self._parts.out.forget_since(before)
            self._parts.record(Kind.REJECTED, source, error.reason, error.detail)
            if source is not None:
                self._parts.out.blame(source, error.reason)
            return error.reason
        return None

    def take_own(self, spoken: Iterable[tuple[Verified, Head]], now: float) -> None:
        """Take fragments that this device just signed."""
        card = self._parts.context.card
        for verified, head in spoken:
            self._place(Arrival(verified, head, card, None, 0, 0), now)

    def drop_neighbor(self, peer: PeerId) -> None:
        """Disconnect a neighbour that is gone; it is sent cards again when it comes back."""
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
        if unit.topic != self._parts.id or unit.seq is None or len(unit.tails) != 1:
            raise InvalidEvent(Reason.MALFORMED, "not a fragment of this place")
        if not self._parts.deed.knew(unit.author) and not self._has_spoken(unit):
            raise InvalidEvent(Reason.NOT_A_PUBLISHER, "the deed does not let this person speak")
        # Fragments are history as soon as they are said: a card that ended since does not undo them.
        return self._parts.context.check(unit, card, None)

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
                if parts.keeps:  # it has heard at no door how far the numbers go
                    parts.fragment_repair.note_number(head.fragment, now)
                self._wait(arrival)
            case Where.ORPHANED:
                note = f"orphaned: fragment {head.fragment} of term {head.term}"
                parts.record(Kind.DROPPED, None, Reason.STALE, note, verified.head)
            case Where.IN_LINE:
                self._store(arrival, now)
                self.shift_line(parts.terms.arrived(verified.head), now)
        if self._waiting and self._changed:
            self._retry(now)

    def _open_term(self, arrival: Arrival, now: float) -> None:
        """Take a fragment that opens a term, which may change the line."""
        parts, unit = self._parts, arrival.verified.unit
        event = arrival.verified.head
        opening = opening_of(arrival.head, unit.author, unit.device, event, unit.seq)
        if parts.terms.equivocated(opening):
            reason, note = Reason.EQUIVOCATION, f"two openings of term {opening.term}"
            parts.out.record(Record(Kind.REJECTED, parts.id, event, unit.device, reason=reason, note=note))
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
        self._parts.out.record(
            Record(kind, parts.id, verified.head, verified.unit.device, head.fragment, 1, source, hops, size)
        )
        self._record_noted()
        self._pass_on(arrival, now)
        self._tell(steps, verified)
        if head.flags & KEYS and not parts.keeps:
            self._tell_unlocked(stored.row, now)
        self._record_noted()

    def _note_change(self, head: Head, change: Change) -> None:
        """Note that a guest came in or left. If we came in, we may have been put out before without hearing
        of it: the peers that we would ask for messages of that time may not have them, and then cannot say
        that they are closed to us. So nothing before our entry is asked for."""
        parts = self._parts
        parts.membership.store(change, head.message, head.generation)
        if not change.joins:
            parts.host_keys.readers.forget(change.nym)
            return
        is_ours = change.nym == parts.context.author and not parts.may_speak
        if is_ours and change.effective_since == head.message:
            parts.close_before(head)

    def _pass_on(self, arrival: Arrival, now: float) -> None:
        """Send a fragment to every downstream that may see it, with the card the first time; to the
        upstreams, too, if it comes from below or from us."""
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
        # One promise for all of them, which are many; without any, what was written still becomes durable.
        self._parts.out.add(AfterCommit(tuple(promises)))

    def _tell(self, steps: list[Step], verified: Verified) -> None:
        """Hand news to the subscribers, and ask for the state messages that it depends on."""
        parts = self._parts
        for step in steps:
            if isinstance(step, Began):
                self._record_ignored(step.message, step.ignored)
            if isinstance(step, Began) and step.header.delta is not None:
                outcomes = parts.order.offered(
                    step.message, step.header.delta, step.modifiers, step.header.hash
                )
                self.tell_state(outcomes)
            if isinstance(step, Broken):
                note = f"message {step.message}: {step.detail}"
                parts.record(Kind.REJECTED, None, step.reason, note, verified.head)
            if isinstance(step, Finished):
                event = (parts.id, verified.head, verified.unit.device, step.message, 1)
                parts.out.committed.record(Record(Kind.DELIVERED, *event))
        self._subscribers.tell_news(steps, verified.unit.author)
        for message in parts.order.missing[:16]:
            # Older messages come with the whole state, and a message that is here waits for its key.
            if message >= parts.since and parts.fragments.get_at(message, 0) is None:
                parts.fragment_repair.want(message)

    def _tell_unlocked(self, row: Row, now: float) -> None:
        """Go on with messages that waited for the keys that came."""
        parts = self._parts
        for message in parts.guest_keys.stored(row, parts.may_speak, now):
            first = parts.fragments.get_at(message, 0)
            verified = None if first is None else parts.fragments.verified(first)
            if verified is not None:
                self._tell(list(parts.reassembly.resume(message)), verified)

    def _record_noted(self) -> None:
        noted, self._parts.guest_keys.noted = self._parts.guest_keys.noted, []
        for record in noted:
            self._parts.out.record(record)

    def tell_state(self, outcomes: Iterable[Outcome]) -> None:
        """Tell subscribers about changes of state, and record what went wrong."""
        parts = self._parts
        items: list[Changed] = []
        for outcome in outcomes:
            match outcome:
                case Applied(message, _, changes, ignored):
                    self._record_ignored(message, ignored)
                    items += [Changed(parts.id, message, name, value) for name, value in changes.items()]
                    hashed = parts.order.signed == message
                    parts.fragments.mark(message, Mark.APPLIED | (Mark.HASH if hashed else Mark(0)))
                case Rebuilt(message, changes, lost):
                    items += [Changed(parts.id, message, name, value) for name, value in changes.items()]
                    self.lost_state = lost
                case Forked(message, _, _, reason):
                    note = f"message {message} carries another hash of the state"
                    parts.record(Kind.REJECTED, None, reason, note)
                    self.lost_state = True
                case NotTaken(message, reason, detail):
                    parts.record(Kind.REJECTED, None, reason, f"state of message {message}: {detail}")
                case _:
                    pass
        self._subscribers.tell_changes(items)

    def _record_ignored(self, message: int, ignored: Iterable[Ignored]) -> None:
        """Record the operations of a message that changed nothing; the rest of the message counts."""
        for operation in ignored:
            modifier = operation.modifier
            note = f"message {message}: {modifier.operator}{modifier.name}: {operation.detail}"
            self._parts.record(Kind.REJECTED, None, operation.reason, note[:200])

    # Terms.

    def _wait(self, arrival: Arrival) -> None:
        self._waiting[arrival.verified.head] = arrival
        if arrival.source is not None:
            self.puzzled[arrival.source] = None
        if len(self._waiting) > WAITING:
            del self._waiting[next(iter(self._waiting))]
            note = "too many fragments of terms that are not known"
            self._parts.record(Kind.DROPPED, None, Reason.QUEUE_FULL, note)

    def _retry(self, now: float) -> None:
        waiting, self._waiting = self._waiting, {}
        self._changed = False
        for arrival in sorted(waiting.values(), key=lambda each: (each.head.term, each.head.fragment)):
            before = self._parts.out.mark()
            try:
                self._place(arrival, now)
            except RemoteError as error:
                self._parts.out.forget_since(before)
                self._parts.record(Kind.REJECTED, None, error.reason, error.detail)

    def follow_shift(self, now: float) -> None:
        """Follow a newer deed, or openings heard at a door: they may have changed the line even where we held
        nothing of it, and fragments that came before that answer wait."""
        shift, self._parts.shift = self._parts.shift, None
        self.shift_line(shift, now)
        if self._waiting:
            self._retry(now)

    def shift_line(self, shift: Shift | None, now: float) -> None:
        """Undo what was applied after the cut, if the line has changed, and take in what counts again."""
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

        The peer that said it repeats it, with another number, and we have to enter by that.
        """
        parts = self._parts
        parts.start_over()
        self.started_over = self._changed = True
        gone = parts.fragments.orphan(-1, LARGEST_COUNT)
        self._undo(Shift(-1, 0), gone, now)
        # Without a line nobody can tell which of them count again; those that do are asked for when we are
        # in.
        self._forget_orphans(0)

    def cut_back(self, now: float) -> None:
        """Cut the line back to the first gap: nothing can be built on fragments after it."""
        parts = self._parts
        last = parts.fragments.upto - 1
        gone = parts.fragments.orphan(last, LARGEST_COUNT) if parts.fragments.standing.fragment > last else []
        if gone:
            self._undo(Shift(last, parts.fragments.standing.message), gone, now)

    def _undo(self, shift: Shift, gone: list[Row], now: float) -> None:
        parts = self._parts
        note = f"{len(gone)} fragments behind {shift.fragment} are orphaned by term {parts.term}"
        self._parts.record(Kind.DROPPED, None, Reason.STALE, note)
        # The device that cut may count messages that it knew of once; here a message stands if its beginning
        # does.
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
        self._parts.out.add(DURABLE)

    def _forget_orphans(self, most: int = ORPHANS) -> None:
        for record in forget_orphans(self._parts.fragments, self._parts.context.device, most):
            self._parts.out.record(record)

    def _adopt_orphans(self, now: float) -> None:
        """Store orphaned fragments that are in the line again."""
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


def forget_orphans(fragments: Fragments, ours: DeviceId, most: int = ORPHANS) -> list[Record]:
    """Forget the first orphans of other devices, past `most` of them: their authors say them again."""
    held = fragments.orphans()
    if len(held) <= most:
        return []
    units = ((row, fragments.unit(row)) for row in held)
    others = [row for row, unit in units if unit is None or unit.device != ours]
    surplus = others[: max(0, len(others) - most)]
    for row in surplus:
        fragments.forget_orphan(row)
    note = f"{len(surplus)} orphaned fragments of others are held no more"
    return [Record(Kind.EVICTED, fragments.place, reason=Reason.QUOTA, note=note)] if surplus else []
