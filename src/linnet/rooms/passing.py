"""What follows when an event has its place: passed on, handed over, acknowledged. And events of our own."""

from __future__ import annotations

from collections.abc import Iterable

from linnet.core.effects import AfterCommit, Deliver, Reply, Send
from linnet.core.errors import Refused as LocallyRefused
from linnet.core.ids import AuthorId, EventId, PeerId
from linnet.core.reasons import Reason
from linnet.delivery.commands import Declined
from linnet.delivery.flood import FloodEffect
from linnet.delivery.items import Item
from linnet.event.event import Event, Verified
from linnet.groups.agreement import Draft as GroupDraft
from linnet.rooms.access.facts import person_of
from linnet.rooms.arrival import Arrival, Placed, Verdict
from linnet.rooms.authoring import causes_of, check_limits
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
from linnet.rooms.effects import RoomEffect, RoomPromise, RoomStep
from linnet.rooms.governing import Draft
from linnet.rooms.messages import Refused, RoomReceipt
from linnet.rooms.parts import Parts
from linnet.rooms.relay_notices import Parcel
from linnet.rooms.results import RoomResult, Sent
from linnet.rooms.secrecy.outgoing import Sealed
from linnet.trace.records import Kind, Record


class Passing:
    """The way out, for one room."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def placed(self, placed: Iterable[Placed], now: float) -> list[RoomStep]:
        """Events have their places, or were refused them."""
        effects: list[RoomStep] = []
        parts = self._parts
        grown = False
        for each in placed:
            if each.verdict is Verdict.REJECTED:
                effects += self._refused(each)
                continue
            foreign = each.arrival.source is not None
            if each.verdict is Verdict.EARLY:
                # It has no place yet, but others can judge it.
                effects += self.spread(each.arrival, now) if foreign else []
                continue
            grown = True
            event = each.arrival.event
            if each.again:
                parts.saw(event)  # All else has followed when it had its place first.
                continue
            if parts.secrecy is not None:
                effects += parts.secrecy.placed(event, each.position, now)
            parts.saw(event)
            effects += self._acknowledged(event, now)
            if each.verdict is Verdict.ACCEPTED:
                effects += self._shown(each)
            else:
                effects += self._doubted(each)
            is_new = foreign and not each.was_early
            if is_new and (each.verdict is Verdict.ACCEPTED or event.kind in (*CONTROL_KINDS, GROUP)):
                effects += self.spread(each.arrival, now)
        if grown:
            effects += parts.receipts.ours(parts.dag.heads)
        return effects

    def reveal(self, now: float) -> list[RoomStep]:
        """Show what was hidden only because its time was ahead of our clock, and is no more."""
        parts = self._parts
        effects: list[RoomStep] = []
        for event, position in parts.intake.due(now):
            parts.saw(event)
            note = f"{event.kind}: its time has come"
            shown = Record(Kind.DELIVERED, parts.id, event.id, event.device, event.seq, note=note)
            effects.append(AfterCommit((*parts.readers.revealed(position, event), shown)))
        if effects:
            effects += parts.receipts.ours(parts.dag.heads)
        return effects

    def spread(self, arrival: Arrival, now: float) -> list[FloodEffect]:
        """Pass an event on to every member who is here, but not back."""
        event = arrival.event
        card = self._parts.context.cards.find(event.author, event.device)
        if card is None:
            return []
        sources = () if arrival.source is None else (arrival.source,)
        return self._parts.flood.spread(
            arrival.verified, card, sources, arrival.hops + 1, arrival.age_us, now
        )

    def say(
        self, drafts: Iterable[Draft], now: float
    ) -> tuple[list[Verified], Declined | None, list[RoomStep]]:
        """Events of our own: made, judged as everyone will judge them, written, and sent to all."""
        made: list[Verified] = []
        effects: list[RoomStep] = []
        drafts = tuple(drafts)
        silenced = self._parts.silenced(now)
        if silenced is not None:
            return made, Declined(*silenced), effects
        try:
            for draft in drafts:
                check_limits(*draft)  # All of them, before any is out.
        except LocallyRefused as error:
            return made, Declined(error.reason, error.detail), effects
        for draft in drafts:
            try:
                verified, sealed = self._make(draft, now)
            except LocallyRefused as error:
                return made, Declined(error.reason, error.detail), effects
            event = verified.events[0]
            refusal = self._parts.control.judge(event) or self._parts.control.doubt(event)
            if refusal is not None:
                return made, Declined(refusal.reason, refusal.rule), effects
            if not self._parts.intake.order.fits(causes_of(event), sum(map(len, verified.unit.tails))):
                detail = "too much waits for events that are missing here"
                return made, Declined(Reason.QUEUE_FULL, detail), effects
            made.append(verified)
            if sealed is not None and self._parts.secrecy is not None:
                self._parts.secrecy.opening.sealed(sealed, event.id)
            effects += self._said(verified, now)
        return made, None, effects

    def say_group(self, draft: GroupDraft, now: float) -> list[RoomStep]:
        """An operation of ours on the room's keys: after what it answers, and nobody's dependency."""
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
        records = secrecy.sent(draft, event.id, now)
        return [*records, *self._said(verified, now)]

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

    def answer(
        self, request: int, made: list[Verified], declined: Declined | None
    ) -> AfterCommit[RoomPromise]:
        """What the application is told of events of its own."""
        parts = self._parts
        result: RoomResult = Sent(
            parts.id, tuple(unit.head for unit in made), len(parts.guests.members), parts.relays.up
        )
        return AfterCommit((Reply(request, result if declined is None else declined),))

    def heard_receipt(self, peer: PeerId, receipt: RoomReceipt, now: float) -> list[RoomEffect]:
        """Someone's word of how far it is: for our ledger, and for others."""
        parts = self._parts
        neighbors = (*parts.guests.members, *parts.relays.up)
        view, card = parts.control.view(), receipt.card
        joined = view.membership(card.person) is Membership.JOIN
        member = joined and not view.is_revoked(card.person, card.device)
        news, passed = parts.receipts.heard(peer, receipt, neighbors, member)
        effects: list[RoomEffect] = [*passed]
        if news and receipt.card.person != parts.context.author:
            parts.ledger.receipts_off(receipt.card.person, receipt.off)
            for head in receipt.heads:
                if parts.dag.knows(head):
                    effects += self._acked(receipt.card.person, head, now)
        return effects

    def parcel(self, event: EventId) -> Parcel | None:
        """An event that is kept here, for a relay."""
        unit = self._parts.memory.get(event)
        if unit is None:
            return None
        known = self._parts.memory.event(event)
        card = self._parts.context.cards.find(unit.author, unit.device)
        return None if known is None else Parcel(known, unit, card)

    def _said(self, verified: Verified, now: float) -> list[RoomStep]:
        parts = self._parts
        event = verified.events[0]
        parts.author.saw(event)
        arrival = Arrival(verified, None, 0, 0)
        # What devices say of keys is no publication: nobody is owed it.
        kind = Kind.CONTROL if event.kind == GROUP else Kind.PUBLISHED
        published = Record(kind, parts.id, event.id, event.device, event.seq, note=event.kind)
        effects: list[RoomStep] = [
            published,
            *parts.ledger.sent(event, self._audience(event), now, put_out_by(event)),
        ]
        effects += parts.receipts.authored(event)
        taken, placed = parts.intake.take(arrival, now)
        effects += [*taken, *self.placed(placed, now)]
        spread = self.spread(arrival, now)
        if spread:
            effects.append(AfterCommit(tuple(spread)))
        card = parts.context.card
        return [*effects, *parts.relays.send([Parcel(event, verified.unit, card)], now)]

    def _audience(self, event: Event) -> tuple[AuthorId, ...]:
        """For whom an event is meant: who is joined at its control heads, without us and without relays."""
        view = self._parts.control.view(self._parts.control.state_at(event.tail.control or ()))
        ours = self._parts.context.author
        return tuple(one for one in view.joined() if one != ours and not view.is_relay_person(one))

    def _acknowledged(self, event: Event, now: float) -> list[RoomEffect]:
        """What an event says of ours by being there, shown or not, and receipts that came before it."""
        parts = self._parts
        effects: list[RoomEffect] = []
        # Not what it names as control heads or as its predecessor: its author may know these before
        # all that they follow.
        for had in (*(event.tail.deps or ()), *(event.tail.concurrent or ())):
            effects += self._acked(event.author, had, now)
        for receipt in parts.receipts.naming(event.id):
            effects += self._acked(receipt.card.person, event.id, now)
        return effects

    def _shown(self, each: Placed) -> list[RoomEffect]:
        """An event that is accepted: to the application. What comes too late is only kept."""
        event, arrival = each.arrival.event, each.arrival
        parts = self._parts
        promises: list[Deliver[Item] | Record] = []
        if each.position is not None:
            promises += parts.readers.written(each.position, event)
        if arrival.source is not None:
            kind = Kind.STORED if each.late or event.kind == GROUP else Kind.DELIVERED
            whose = (parts.id, event.id, event.device, event.seq)
            promises.append(Record(kind, *whose, peer=arrival.source, hops=arrival.hops, note=event.kind))
        return [AfterCommit(tuple(promises))] if promises else []

    def _acked(self, person: AuthorId, event: EventId, now: float) -> list[Record]:
        if person == self._parts.context.author or not self._parts.dag.satisfies(event):
            return []
        reach = self._parts.dag.reach(event)
        if reach < 0:
            return []
        return self._parts.ledger.acked(person, reach, now)

    def _doubted(self, each: Placed) -> list[RoomEffect]:
        """Tell an author who brings it itself that its event is not shown here."""
        source = each.arrival.source
        guest = None if source is None else self._parts.guests.by_peer.get(source)
        is_author = guest is not None and guest.person == each.arrival.event.author
        return self._refused(each) if is_author else []

    def _refused(self, each: Placed) -> list[RoomEffect]:
        source = each.arrival.source
        if source is None or each.refusal is None:
            return []
        event = each.arrival.event
        return [Send(source, Refused(self._parts.id, event.id, each.refusal.reason, each.refusal.rule[:200]))]


def put_out_by(event: Event) -> AuthorId | None:
    """Whom an event puts out of the room; None: nobody, or its author."""
    if event.kind != MEMBER or event.tail.key in (None, member_key(event.author)):
        return None
    content = content_of(event.kind, event.body)
    is_out = isinstance(content, Member) and content.membership in (Membership.LEAVE, Membership.BAN)
    return person_of(event.tail.key or "") if is_out else None
