"""What comes in: every fragment is checked, put into the line, written down, passed on and told.

From whomever it comes, be it ourselves. Nothing is passed on before its signature was checked, and to
nobody who may not see it (Toth 2013, section 3.7).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from msgspec import Struct

from linnet.core.effects import AfterCommit, Blame, Send
from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.ids import EventId, PeerId
from linnet.core.limits import LARGEST_COUNT
from linnet.core.reasons import Reason
from linnet.delivery.messages import MAX_HOPS, Data
from linnet.event.event import Unverified, Verified
from linnet.event.signing import unit_head
from linnet.identity.cards import Card
from linnet.places.channel.assembly import Began, Broken, Finished, Step
from linnet.places.channel.fragments import Conflict, New
from linnet.places.channel.ordering import Applied, Forked, NotTaken, Outcome, Rebuilt
from linnet.places.channel.retention import forget_orphans
from linnet.places.channel.rows import Mark, Row
from linnet.places.effects import PlacePromise
from linnet.places.items import Changed
from linnet.places.multicast.head import KEYS, OPENING, Change, Head, head_of
from linnet.places.multicast.terms import Shift, Where, opening_of
from linnet.places.parts import Parts
from linnet.places.watching import Watching
from linnet.trace.records import Kind, Record

WAITING = 1024
"""Fragments of terms that are not known yet that are held at once."""

LATELY = 256
"""Fragments that are known again without looking into the log."""

TakingEffect: TypeAlias = AfterCommit[PlacePromise] | Blame | Record


class Arrival(Struct, frozen=True, gc=False):
    """A fragment that was checked, and how it came."""

    verified: Verified
    head: Head
    card: Card
    source: PeerId | None
    """None: we said it."""
    hops: int
    age_us: int


class Taking:
    """The way in of one place."""

    def __init__(self, parts: Parts, watching: Watching) -> None:
        self._parts = parts
        self._watching = watching
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
    ) -> tuple[bool, list[TakingEffect]]:
        """A fragment from a peer, live or replayed; whether it was good, and what follows."""
        try:
            event = unit_head(unit)
            if event in self._waiting or self._is_in_line(event):
                return True, [Record(Kind.DUPLICATE, self._parts.id, event, peer=source)]
            verified, known = self._check(unit, card, now)
            head = head_of(verified.events[0])
            return True, self._placed(Arrival(verified, head, known, source, hops, age_us), now)
        except RemoteError as error:
            note = error.detail[:200]
            record = Record(Kind.REJECTED, self._parts.id, peer=source, reason=error.reason, note=note)
            blame = [] if source is None else [Blame(source, error.reason)]
            return False, [record, *blame]

    def own(self, spoken: Iterable[tuple[Verified, Head]], now: float) -> list[TakingEffect]:
        """Fragments that this device just signed."""
        effects: list[TakingEffect] = []
        card = self._parts.context.card
        for verified, head in spoken:
            effects += self._placed(Arrival(verified, head, card, None, 0, 0), now)
        return effects

    def dropped(self, peer: PeerId) -> None:
        """A neighbour is gone: it is told cards anew when it comes back."""
        parts = self._parts
        parts.relaying.leave(peer)
        parts.relaying_up.leave(peer)
        parts.tree.disconnect(peer)
        parts.missing.disconnect(peer)
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

    def _placed(self, arrival: Arrival, now: float) -> list[TakingEffect]:
        parts = self._parts
        verified, head = arrival.verified, arrival.head
        device = verified.unit.device
        effects = self._opened(arrival, now) if head.flags & OPENING else []
        where = parts.terms.where(head, device, verified.unit.seq)
        if where is not Where.IN_LINE and parts.terms.awaits(verified.head):
            # Beside our line, but another term opens behind it: that may be the one that counts.
            parts.keep_beside(verified, now)
            parts.missing.found(head.fragment)
            effects += self.shifted(parts.terms.arrived(verified.head), now)
            where = parts.terms.where(head, device, verified.unit.seq)
        match where:
            case Where.WAITING:
                if parts.keeps:  # nobody told it at a door how far the numbers are
                    parts.missing.saw(head.fragment, now)
                effects += self._wait(arrival)
            case Where.ORPHANED:
                note = f"orphaned: fragment {head.fragment} of term {head.term}"
                effects.append(Record(Kind.DROPPED, parts.id, verified.head, reason=Reason.STALE, note=note))
            case Where.IN_LINE:
                effects += self._stored(arrival, now)
                effects += self.shifted(parts.terms.arrived(verified.head), now)
        return [*effects, *self._retry(now)] if self._waiting and self._changed else effects

    def _opened(self, arrival: Arrival, now: float) -> list[TakingEffect]:
        """A fragment that opens a term: perhaps the line is another now."""
        parts, unit = self._parts, arrival.verified.unit
        event = arrival.verified.head
        opening = opening_of(arrival.head, unit.author, unit.device, event, unit.seq)
        effects: list[TakingEffect] = []
        if parts.terms.equivocated(opening):
            note = f"two openings of term {opening.term}"
            reason = Reason.EQUIVOCATION
            effects.append(Record(Kind.REJECTED, parts.id, event, unit.device, reason=reason, note=note))
        shift = parts.terms.offer(opening)
        parts.keep_opening(opening)
        effects += self.shifted(shift, now)
        for number in parts.terms.sought:
            parts.missing.seek(number)
        return effects

    def _stored(self, arrival: Arrival, now: float) -> list[TakingEffect]:
        parts = self._parts
        verified, head, source, hops = arrival.verified, arrival.head, arrival.source, arrival.hops
        stored = parts.fragments.store(verified, head, now)
        if isinstance(stored, Conflict):
            if stored.reason is Reason.EQUIVOCATION and source is not None:
                self.puzzled[source] = None  # its device may have had to open this term once more
            raise InvalidEvent(stored.reason, f"fragment {head.fragment} of term {head.term}")
        if not isinstance(stored, New):
            return []
        self._lately[verified.head] = head.fragment
        if len(self._lately) > LATELY:
            del self._lately[next(iter(self._lately))]
        parts.missing.arrived(head, now)
        parts.context.cards.keep(verified.unit.author, verified.unit.device)
        if head.term == parts.term and source is not None:
            parts.toward = source
        if head.change is not None:
            self._noticed(head, head.change)
        steps = [] if parts.keeps else parts.assembly.told(stored.row)
        promises: list[PlacePromise] = [*self._passed_on(arrival, now)]
        told, records = self._told(steps, verified)
        promises += told
        if head.flags & KEYS and not parts.keeps:
            freed, noted = self._freed(stored.row, now)
            promises += freed
            records += noted
        records += self._noted()
        kind = Kind.PUBLISHED if source is None else Kind.RECEIVED
        size = len(verified.unit.tails[0])
        record = Record(
            kind, parts.id, verified.head, verified.unit.device, head.fragment, 1, source, hops, size
        )
        return [record, *records, AfterCommit(tuple(promises))]

    def _noticed(self, head: Head, change: Change) -> None:
        """Somebody came in or went. If we came in, perhaps not for the first time, we may have been put out
        without having heard of it: those whom we would ask for what was said meanwhile need not have it, and
        then cannot say that it is closed to us."""
        parts = self._parts
        parts.membership.store(change, head.message, head.generation)
        if not change.joins:
            parts.sealing.readers.forget(change.nym)
            return
        is_ours = change.nym == parts.context.author and not parts.may_speak
        if is_ours and change.effective_since == head.message:
            parts.close_before(head)

    def _passed_on(self, arrival: Arrival, now: float) -> list[Send[Data] | Record]:
        """To every downstream that may see it, with the card the first time."""
        verified, head, card = arrival.verified, arrival.head, arrival.card
        unit = verified.unit
        found = self._parts.relaying.targets(head, arrival.source)
        peers = dict.fromkeys(found.peers)
        effects: list[Send[Data] | Record] = [*found.records]
        if arrival.source is None or arrival.source in self._parts.tree.downstreams:
            # The voice is below us, or is us: those above hear it through us.
            above = self._parts.relaying_up.targets(head, arrival.source)
            peers.update(dict.fromkeys(above.peers))
            effects += above.records
        hops, sent_us = min(arrival.hops + 1, MAX_HOPS), int(now * 1_000_000)
        device = unit.author + unit.device
        for peer in peers:
            known = self._cards.get((peer, device)) is card
            self._cards[peer, device] = card
            effects.append(Send(peer, Data(unit, hops, arrival.age_us, sent_us, None if known else card)))
            place = (self._parts.id, verified.head, unit.device, head.fragment, 1, peer, hops)
            effects.append(Record(Kind.SENT, *place, len(unit.tails[0])))
        return effects

    def _told(self, steps: list[Step], verified: Verified) -> tuple[list[PlacePromise], list[TakingEffect]]:
        parts = self._parts
        promises: list[PlacePromise] = []
        records: list[TakingEffect] = []
        for step in steps:
            if isinstance(step, Began) and step.header.delta is not None:
                outcomes = parts.order.offered(
                    step.message, step.header.delta, step.modifiers, step.header.hash
                )
                told, noted = self.heed(outcomes)
                promises += told
                records += noted
            if isinstance(step, Broken):
                note = f"message {step.message}: {step.detail}"[:200]
                records.append(Record(Kind.REJECTED, parts.id, verified.head, reason=step.reason, note=note))
            if isinstance(step, Finished):
                seq = step.message
                promises.append(Record(Kind.DELIVERED, parts.id, verified.head, verified.unit.device, seq, 1))
        promises += self._watching.told(steps, verified.unit.author)
        for message in parts.order.missing[:16]:
            # What is older comes with the whole state, and what is here waits for its key.
            if message >= parts.since and parts.fragments.get_at(message, 0) is None:
                parts.missing.want(message)
        return promises, records

    def _freed(self, row: Row, now: float) -> tuple[list[PlacePromise], list[TakingEffect]]:
        """Keys came: what waited for them goes on."""
        parts = self._parts
        promises: list[PlacePromise] = []
        records: list[TakingEffect] = []
        for message in parts.opening.stored(row, parts.may_speak, now):
            first = parts.fragments.get_at(message, 0)
            verified = None if first is None else parts.fragments.verified(first)
            if verified is not None:
                told, noted = self._told(list(parts.assembly.resume(message)), verified)
                promises += told
                records += noted
        return promises, records

    def _noted(self) -> list[Record]:
        noted, self._parts.opening.noted = self._parts.opening.noted, []
        return noted

    def heed(self, outcomes: Iterable[Outcome]) -> tuple[list[PlacePromise], list[TakingEffect]]:
        """What became of changes of state: told to whoever watches, and written down if it went wrong."""
        parts = self._parts
        items: list[Changed] = []
        records: list[TakingEffect] = []
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
                    records.append(Record(Kind.REJECTED, parts.id, reason=reason, note=note))
                    self.lost_state = True
                case NotTaken(message, reason, detail):
                    note = f"state of message {message}: {detail}"[:200]
                    records.append(Record(Kind.REJECTED, parts.id, reason=reason, note=note))
                case _:
                    pass
        return [*self._watching.heard(items)], records

    # Terms.

    def _wait(self, arrival: Arrival) -> list[TakingEffect]:
        self._waiting[arrival.verified.head] = arrival
        if arrival.source is not None:
            self.puzzled[arrival.source] = None
        if len(self._waiting) <= WAITING:
            return []
        del self._waiting[next(iter(self._waiting))]
        note = "too many fragments of terms that are not known"
        return [Record(Kind.DROPPED, self._parts.id, reason=Reason.QUEUE_FULL, note=note)]

    def _retry(self, now: float) -> list[TakingEffect]:
        waiting, self._waiting = self._waiting, {}
        self._changed = False
        effects: list[TakingEffect] = []
        for arrival in sorted(waiting.values(), key=lambda each: (each.head.term, each.head.fragment)):
            try:
                effects += self._placed(arrival, now)
            except RemoteError as error:
                note = error.detail[:200]
                effects.append(Record(Kind.REJECTED, self._parts.id, reason=error.reason, note=note))
        return effects

    def renewed(self, now: float) -> list[TakingEffect]:
        """A newer deed, or what was told at a door, may have made the line another: also where we held
        nothing of it, and what came before that answer waits."""
        shift, self._parts.shift = self._parts.shift, None
        effects = self.shifted(shift, now)
        return [*effects, *self._retry(now)] if self._waiting else effects

    def shifted(self, shift: Shift | None, now: float) -> list[TakingEffect]:
        """The line is another now: what was applied behind the cut is undone, what counts again is taken."""
        if shift is None:
            return []
        self._changed = True
        parts = self._parts
        held = parts.fragments.standing.fragment >= 0
        is_other = shift.fragment < 0 and (held or shift.anew)
        if parts.terms.is_adrift or (is_other and parts.terms.base is not None):
            return self.start_over(now)
        gone = parts.fragments.orphan(shift.fragment, LARGEST_COUNT) if held else []
        effects = self._undone(shift, gone, now) if gone else []
        return [*effects, *self._adopted(now)]

    def start_over(self, now: float) -> list[TakingEffect]:
        """The notice that let us in is not in the line: nothing of what we know counts.

        Whoever said it says it again, with another number, and we have to come in by that.
        """
        parts = self._parts
        parts.start_over()
        self.started_over = self._changed = True
        gone = parts.fragments.orphan(-1, LARGEST_COUNT)
        effects = self._undone(Shift(-1, 0), gone, now)
        # Without a line nobody can tell which of it counts again; what does is asked for when we are in.
        return [*effects, *forget_orphans(parts.fragments, parts.context.device, 0)]

    def cut_back(self, now: float) -> list[TakingEffect]:
        """What is held behind a gap cannot be built on: go back to what is whole."""
        parts = self._parts
        last = parts.fragments.upto - 1
        gone = parts.fragments.orphan(last, LARGEST_COUNT) if parts.fragments.standing.fragment > last else []
        if not gone:
            return []
        return self._undone(Shift(last, parts.fragments.standing.message), gone, now)

    def _undone(self, shift: Shift, gone: list[Row], now: float) -> list[TakingEffect]:
        parts = self._parts
        # Whoever cut may count messages that it knew of once: here those stand whose beginning does.
        begun = [row.message - 1 for row in gone if row.is_first]
        last = min([shift.message, *begun])
        parts.missing.rewind(shift.fragment + 1, last)
        if shift.fragment >= 0:
            parts.missing.saw(shift.fragment, now)
        term, told = parts.told
        if term >= parts.term:
            parts.missing.saw(told, now)
        parts.toward = None
        parts.membership.undo(last)
        parts.relaying.forget()
        parts.relaying_up.forget()
        messages = list(dict.fromkeys(row.message for row in gone))
        broken = parts.assembly.cut(messages)
        changed, records = self.heed(parts.order.rollback(last))
        if parts.order.is_lost:
            again, faults = self.heed(parts.recall_states())
            changed, records = [*changed, *again], [*records, *faults]
            self.lost_state = parts.order.is_lost
        units = (parts.fragments.unit(row) for row in gone)
        if any(unit is not None and unit.device == parts.context.device for unit in units):
            self.cut_off = True
        note = f"{len(gone)} fragments behind {shift.fragment} are orphaned by term {parts.term}"
        let_go = forget_orphans(parts.fragments, parts.context.device)
        noted = [Record(Kind.DROPPED, parts.id, reason=Reason.STALE, note=note), *let_go]
        taken = self._watching.taken_back(messages, broken) if messages else []
        promises: list[PlacePromise] = [*changed, *taken]
        return [*noted, *records, AfterCommit(tuple(promises))]

    def _adopted(self, now: float) -> list[TakingEffect]:
        """Fragments that were orphaned, and are in the line again."""
        parts = self._parts
        effects: list[TakingEffect] = []
        for row in parts.fragments.orphans():
            verified = parts.fragments.verified(row)
            if verified is None:
                parts.fragments.forget_orphan(row)
                continue
            head, unit = head_of(verified.events[0]), verified.unit
            card = parts.context.cards.find(unit.author, unit.device)
            if card is not None and parts.terms.where(head, unit.device, unit.seq) is Where.IN_LINE:
                parts.fragments.forget_orphan(row)
                effects += self._stored(Arrival(verified, head, card, parts.context.peer, 0, 0), now)
        return effects
