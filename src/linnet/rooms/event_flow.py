"""What follows when an event has its place: passed on, handed over, acknowledged. And events of our own."""

from __future__ import annotations

from collections.abc import Iterable

from linnet.core.effects import AfterCommit
from linnet.core.errors import Refused as LocallyRefused
from linnet.core.ids import AuthorId, EventId, PeerId
from linnet.core.reasons import Reason
from linnet.delivery.commands import Declined
from linnet.delivery.flood import FloodEffect
from linnet.event.event import Event, Verified
from linnet.groups.agreement import Draft as GroupDraft
from linnet.rooms.access.facts import person_of
from linnet.rooms.arrival import Arrival, Placed, Verdict
from linnet.rooms.content import (
    CONTROL_KINDS,
    GROUP,
    MEMBER,
    REVOCATION,
    Member,
    Membership,
    content_of,
    member_key,
)
from linnet.rooms.encryption.outgoing import Sealed
from linnet.rooms.event_builder import causes_of, check_limits
from linnet.rooms.governing import Draft
from linnet.rooms.messages import Refused, RoomReceipt
from linnet.rooms.relay_notices import Parcel
from linnet.rooms.results import Sent
from linnet.rooms.room_setup import Parts
from linnet.trace.records import Kind, Record


class Passing:
    """The way out, for one room."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._out = parts.out

    def pass_on(self, placed: Iterable[Placed], now: float) -> None:
        """Do what follows for events that have their places, or were refused them."""
        parts = self._parts
        grown = False
        for each in placed:
            if each.verdict is Verdict.REJECTED:
                self._refuse(each)
                continue
            foreign = each.arrival.source is not None
            if each.verdict is Verdict.EARLY:
                # It has no place yet, but others can judge it.
                if foreign:
                    self._spread(each.arrival, now)
                continue
            grown = True
            event = each.arrival.event
            if each.again:
                parts.note_event(event)  # All else has followed when it had its place first.
                continue
            if parts.secrecy is not None:
                parts.secrecy.follow(event, each.position, now)
            parts.note_event(event)
            self._note_acks(event, now)
            if each.verdict is Verdict.ACCEPTED:
                self._show(each)
            else:
                self._tell_author(each)
            is_new = foreign and not each.was_early
            if is_new and (each.verdict is Verdict.ACCEPTED or event.kind in (*CONTROL_KINDS, GROUP)):
                self._spread(each.arrival, now)
        if grown:
            parts.receipts.note_heads(parts.dag.heads)

    def reveal(self, now: float) -> None:
        """Show what was hidden only because its time was ahead of our clock, and is no more."""
        parts = self._parts
        revealed = parts.intake.reveal_due(now)
        for event, position in revealed:
            parts.note_event(event)
            note = f"{event.kind}: its time has come"
            shown = Record(Kind.DELIVERED, parts.id, event.id, event.device, event.seq, note=note)
            parts.readers.reveal(position, event)
            self._out.committed.record(shown)
        if revealed:
            parts.receipts.note_heads(parts.dag.heads)

    def _spread(self, arrival: Arrival, now: float) -> None:
        """Pass an event on to every member who is here, but not back."""
        self._out.extend(self._copies(arrival, now))

    def _copies(self, arrival: Arrival, now: float) -> list[FloodEffect]:
        event = arrival.event
        card = self._parts.context.cards.find(event.author, event.device)
        if card is None:
            return []
        sources = () if arrival.source is None else (arrival.source,)
        return self._parts.flood.spread(
            arrival.verified, card, sources, arrival.hops + 1, arrival.age_us, now
        )

    def say(self, drafts: Iterable[Draft], now: float) -> tuple[list[Verified], Declined | None]:
        """Make events of our own, judge them as everyone will, write them, and send them to all.

        Returns those that were made, and why there are no more of them, if so.
        """
        made: list[Verified] = []
        drafts = tuple(drafts)
        silenced = self._parts.silenced(now)
        if silenced is not None:
            return made, Declined(*silenced)
        try:
            for draft in drafts:
                check_limits(*draft)  # All of them, before any is out.
        except LocallyRefused as error:
            return made, Declined(error.reason, error.detail)
        for draft in drafts:
            try:
                verified, sealed = self._make(draft, now)
            except LocallyRefused as error:
                return made, Declined(error.reason, error.detail)
            event = verified.events[0]
            refusal = self._parts.control.judge(event) or self._parts.control.doubt(event)
            if refusal is not None:
                return made, Declined(refusal.reason, refusal.rule)
            if not self._parts.intake.order.fits(causes_of(event), sum(map(len, verified.unit.tails))):
                detail = "too much waits for events that are missing here"
                return made, Declined(Reason.QUEUE_FULL, detail)
            made.append(verified)
            if sealed is not None and self._parts.secrecy is not None:
                self._parts.secrecy.opening.sealed(sealed, event.id)
            self._publish(verified, now)
        return made, None

    def say_group(self, draft: GroupDraft, now: float) -> None:
        """Say an operation of ours on the room's keys: after what it answers, and nobody's dependency."""
        secrecy = self._parts.secrecy
        if secrecy is None:
            raise LocallyRefused(Reason.NOT_ALLOWED, "the room is not encrypted")
        silenced = self._parts.silenced(now)
        if silenced is not None:
            raise LocallyRefused(*silenced)
        verified = self._parts.author.make(GROUP, None, draft.body, now, after=draft.deps)
        event = verified.events[0]
        refusal = self._parts.control.judge(event) or self._parts.control.doubt(event)
        if refusal is not None:
            raise LocallyRefused(refusal.reason, refusal.rule)
        secrecy.follow_own(draft, event.id, now)
        self._publish(verified, now)

    def _make(self, draft: Draft, now: float) -> tuple[Verified, Sealed | None]:
        """An event of our own, sealed where the room is encrypted."""
        secrecy, author = self._parts.secrecy, self._parts.author
        if draft.kind == REVOCATION:
            # A device that a younger one has revoked answers from before that: see docs/adr/0025.
            own = self._parts.context
            before = self._parts.control.heads_against(own.author, own.device)
            return author.make(draft.kind, draft.key, draft.body, now, control=before), None
        if secrecy is None or not secrecy.opening.seals(draft.kind, draft.key):
            return author.make(draft.kind, draft.key, draft.body, now), None
        sealed = secrecy.opening.seal(draft.body, now)
        return author.make(draft.kind, draft.key, b"", now, seal=sealed.fill), sealed

    def answer(self, request: int, made: list[Verified], declined: Declined | None) -> None:
        """Tell the application what became of events of its own."""
        parts = self._parts
        sent = Sent(parts.id, tuple(unit.head for unit in made), len(parts.guests.members), parts.relays.up)
        self._out.committed.reply(request, sent if declined is None else declined)

    def handle_receipt(self, peer: PeerId, receipt: RoomReceipt, now: float) -> None:
        """Take somebody's word of how far it is: for our ledger, and for others."""
        parts = self._parts
        neighbors = (*parts.guests.members, *parts.relays.up)
        view, card = parts.control.view(), receipt.card
        joined = view.membership(card.person) is Membership.JOIN
        member = joined and not view.is_revoked(card.person, card.device)
        is_news = parts.receipts.handle_receipt(peer, receipt, neighbors, member)
        if is_news and receipt.card.person != parts.context.author:
            parts.ledger.note_receipts_off(receipt.card.person, receipt.off)
            for head in receipt.heads:
                if parts.dag.knows(head):
                    self._note_ack(receipt.card.person, head, now)

    def parcel(self, event: EventId) -> Parcel | None:
        """An event that is kept here, for a relay."""
        unit = self._parts.memory.get(event)
        if unit is None:
            return None
        known = self._parts.memory.event(event)
        card = self._parts.context.cards.find(unit.author, unit.device)
        return None if known is None else Parcel(known, unit, card)

    def _publish(self, verified: Verified, now: float) -> None:
        """Write an event of ours, and send it to members and relays."""
        parts = self._parts
        event = verified.events[0]
        parts.author.saw(event)
        arrival = Arrival(verified, None, 0, 0)
        # What devices say of keys is no publication: nobody is owed it.
        kind = Kind.CONTROL if event.kind == GROUP else Kind.PUBLISHED
        self._out.record(Record(kind, parts.id, event.id, event.device, event.seq, note=event.kind))
        parts.ledger.open_account(event, self._audience(event), now, put_out_by(event))
        parts.receipts.note_own_event(event)
        self.pass_on(parts.intake.take(arrival, now), now)
        copies = self._copies(arrival, now)
        if copies:
            self._out.add(AfterCommit((*copies,)))
        parts.relays.send([Parcel(event, verified.unit, parts.context.card)], now)

    def _audience(self, event: Event) -> tuple[AuthorId, ...]:
        """For whom an event is meant: who is joined at its control heads, without us and without relays."""
        view = self._parts.control.view(self._parts.control.state_at(event.tail.control or ()))
        ours = self._parts.context.author
        return tuple(one for one in view.joined() if one != ours and not view.is_relay_person(one))

    def _note_acks(self, event: Event, now: float) -> None:
        """Note what an event says of ours by being there, shown or not, and receipts that came before it."""
        parts = self._parts
        # Not what it names as control heads or as its predecessor: its author may know these before
        # all that they follow.
        for had in (*(event.tail.deps or ()), *(event.tail.concurrent or ())):
            self._note_ack(event.author, had, now)
        for receipt in parts.receipts.naming(event.id):
            self._note_ack(receipt.card.person, event.id, now)

    def _show(self, each: Placed) -> None:
        """Hand an event that is accepted to the application. What comes too late is only kept."""
        event, arrival = each.arrival.event, each.arrival
        parts = self._parts
        if each.position is not None:
            parts.readers.hand_event(each.position, event)
        if arrival.source is not None:
            kind = Kind.STORED if each.late or event.kind == GROUP else Kind.DELIVERED
            whose = (parts.id, event.id, event.device, event.seq)
            source, hops = arrival.source, arrival.hops
            self._out.committed.record(Record(kind, *whose, peer=source, hops=hops, note=event.kind))

    def _note_ack(self, person: AuthorId, event: EventId, now: float) -> None:
        if person == self._parts.context.author or not self._parts.dag.satisfies(event):
            return
        reach = self._parts.dag.reach(event)
        if reach >= 0:
            self._parts.ledger.note_ack(person, reach, now)

    def _tell_author(self, each: Placed) -> None:
        """Tell an author who brings it itself that its event is not shown here."""
        source = each.arrival.source
        guest = None if source is None else self._parts.guests.by_peer.get(source)
        if guest is not None and guest.person == each.arrival.event.author:
            self._refuse(each)

    def _refuse(self, each: Placed) -> None:
        source = each.arrival.source
        if source is None or each.refusal is None:
            return
        event, refusal = each.arrival.event, each.refusal
        self._out.send(source, Refused(self._parts.id, event.id, refusal.reason, refusal.rule[:200]))


def put_out_by(event: Event) -> AuthorId | None:
    """Whom an event puts out of the room; None: nobody, or its author."""
    if event.kind != MEMBER or event.tail.key in (None, member_key(event.author)):
        return None
    content = content_of(event.kind, event.body)
    is_out = isinstance(content, Member) and content.membership in (Membership.LEAVE, Membership.BAN)
    return person_of(event.tail.key or "") if is_out else None
