"""The flow of events through one room: in from peers, and out to members, relays and subscribers.

A unit from a peer is checked for duplicates, for forgery, and for whether its source may send it; then the
intake judges it. Events with a place, our own included, are flooded, delivered and acknowledged.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.errors import Refused as LocallyRefused
from linnet.core.ids import AuthorId, EventId, PeerId
from linnet.core.reasons import Reason
from linnet.event.event import Event, Unverified, Verified
from linnet.event.signing import unit_head
from linnet.groups.agreement import Draft as GroupDraft
from linnet.identity.cards import Card
from linnet.machine.commands import Declined
from linnet.machine.outbox import Promises, Sink
from linnet.rooms.auth.room_state import person_of
from linnet.rooms.commands import Sent
from linnet.rooms.encryption.room_group import OutgoingMessage
from linnet.rooms.event_positions import Arrival, Draft, Placed, Verdict, causes_of, check_limits
from linnet.rooms.event_types import (
    CONTROL_KINDS,
    GROUP,
    MEMBER,
    REVOCATION,
    Member,
    Membership,
    content_of,
    member_key,
)
from linnet.rooms.invitations import check_unexpired
from linnet.rooms.messages import Refused, RoomReceipt
from linnet.rooms.relay_client.relay_session import Parcel
from linnet.rooms.room_setup import Parts
from linnet.trace.records import Kind, Record

_CLEARED = "what it failed by is revoked"


class Passing:
    """Passes on the events of one room, and publishes our own."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._out = parts.out
        self._silenced: int | None = None
        """The control events that are silenced, as a mask; None before anything was passed on."""

    def pass_on(self, placed: Iterable[Placed], now: float) -> None:
        """Flood, deliver and acknowledge events that have their places; refuse the rejected ones."""
        parts = self._parts
        grown = False
        cleared = self._judge_in_hindsight()
        for each in placed:
            while cleared and each.position is not None and cleared[0][0] < each.position:
                self._reveal(cleared.popleft()[1], _CLEARED)
            if each.verdict is Verdict.REJECTED:
                self._refuse(each)
                continue
            foreign = each.arrival.source is not None
            if each.verdict is Verdict.EARLY:
                # The event has no place yet, but others can judge it.
                if foreign:
                    self._spread(each.arrival, now, self._out)
                continue
            grown = True
            event = each.arrival.event
            if each.again:
                self._note_again(each)
                continue
            if parts.group is not None:
                parts.group.follow(event, each.position, now)
            parts.note_event(event)
            self._note_acks(event, now)
            if each.verdict is Verdict.ACCEPTED:
                self._show(each, now)
            else:
                self._tell_author(each)
            is_new = foreign and not each.was_early
            if is_new and (each.verdict is Verdict.ACCEPTED or event.kind in (*CONTROL_KINDS, GROUP)):
                self._spread(each.arrival, now, self._out)
        for _, event in cleared:
            self._reveal(event, _CLEARED)
        if grown:
            parts.receipts.note_heads(parts.dag.heads)

    def _note_again(self, each: Placed) -> None:
        """Note an event that had a place before the log was damaged; all else was done then."""
        event = each.arrival.event
        self._parts.note_event(event)
        if each.verdict is Verdict.SOFT_FAILED and self._parts.intake.is_given_back(event):
            self._reveal(event, _CLEARED)

    def reveal_future(self) -> None:
        """Deliver the events that an earlier version hid because their time was ahead of our clock."""
        for event in self._parts.intake.future():
            self._reveal(event, "was hidden for its time")

    def _judge_in_hindsight(self) -> deque[tuple[int, Event]]:
        """Return the hidden events that may be shown since further control events are silenced."""
        parts = self._parts
        before, self._silenced = self._silenced, parts.control.silenced
        if self._silenced == (before or 0):
            return deque()
        if before is not None:  # At a start the ledger knows it already.
            parts.ledger.withdraw_refusals(parts.intake.is_allowed_now)
        return deque(parts.intake.cleared())

    def _reveal(self, event: Event, why: str) -> None:
        parts = self._parts
        position = parts.intake.reveal(event)
        parts.note_event(event)
        note = f"{event.kind}: {why}"
        kind = Kind.STORED if event.kind == GROUP else Kind.DELIVERED
        shown = Record(kind, parts.id, event.id, event.device, event.seq, note=note)
        parts.subscriptions.reveal(position, event)
        self._out.committed.record(shown)
        parts.receipts.note_heads(parts.dag.heads)

    def _spread(self, arrival: Arrival, now: float, out: Sink) -> None:
        """Flood an event to all online members but its source."""
        event = arrival.event
        card = self._parts.context.cards.find(event.author, event.device)
        if card is not None:
            sources = () if arrival.source is None else (arrival.source,)
            hops, age_us = arrival.hops + 1, arrival.age_us
            self._parts.flood.spread(arrival.verified, card, sources, hops, age_us, now, out)

    def say(self, drafts: Iterable[Draft], now: float) -> tuple[list[Verified], Declined | None]:
        """Publish events of our own: sign them, judge them as others will, write them, and send them to all.

        Returns the published events, and the reason if the rest was declined.
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
            if sealed is not None and self._parts.group is not None:
                self._parts.group.messages.sealed(sealed, event.id)
            self._publish(verified, now)
        return made, None

    def say_group(self, draft: GroupDraft, now: float) -> None:
        """Publish an operation of ours on the room's keys; no other event depends on it."""
        group = self._parts.group
        if group is None:
            raise LocallyRefused(Reason.NOT_ALLOWED, "the room is not encrypted")
        silenced = self._parts.silenced(now)
        if silenced is not None:
            raise LocallyRefused(*silenced)
        verified = self._parts.author.make(Draft(GROUP, None, draft.body), now, after=draft.deps)
        event = verified.events[0]
        refusal = self._parts.control.judge(event) or self._parts.control.doubt(event)
        if refusal is not None:
            raise LocallyRefused(refusal.reason, refusal.rule)
        group.follow_own(draft, event.id, now)
        self._publish(verified, now)

    def _make(self, draft: Draft, now: float) -> tuple[Verified, OutgoingMessage | None]:
        """Sign an event of our own; seal its body if the room is encrypted."""
        group, author = self._parts.group, self._parts.author
        if draft.kind == REVOCATION:
            # A device that a younger one has revoked answers from before that: see docs/adr/0025.
            own = self._parts.context
            before = self._parts.control.heads_against(own.author, own.device)
            return author.make(draft, now, control=before), None
        if group is None or not group.messages.seals(draft.kind, draft.key):
            return author.make(draft, now), None
        sealed = group.messages.seal(draft.body, now)
        return author.make(Draft(draft.kind, draft.key, b""), now, seal=sealed.fill), sealed

    def answer(self, request: int, made: list[Verified], declined: Declined | None) -> None:
        """Reply to a command that published events, or decline it."""
        parts = self._parts
        sent = Sent(parts.id, tuple(unit.head for unit in made), len(parts.guests.members), parts.relays.up)
        self._out.committed.reply(request, sent if declined is None else declined)

    def handle_receipt(self, peer: PeerId, receipt: RoomReceipt, now: float) -> None:
        """Take in a receipt of a member: enter it into our ledger, and pass it on."""
        parts = self._parts
        view, card = parts.control.view(), receipt.card
        member = view.is_member(card.person, card.device)
        is_news = parts.receipts.handle_receipt(peer, receipt, parts.sources, member)
        if is_news and receipt.card.person != parts.context.author:
            parts.ledger.note_receipts_off(receipt.card.person, receipt.off)
            for head in receipt.heads:
                if parts.dag.knows(head):
                    self._note_ack(receipt.card.person, head, now)

    def parcel(self, event: EventId) -> Parcel | None:
        """Return the stored event as it is sent to a relay; None if it is not here."""
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
        parts.author.note(event)
        arrival = Arrival(verified, None, 0, 0)
        # An operation on keys is no publication: it is not meant for anyone in the ledger.
        kind = Kind.CONTROL if event.kind == GROUP else Kind.PUBLISHED
        self._out.record(Record(kind, parts.id, event.id, event.device, event.seq, note=event.kind))
        parts.ledger.open_account(event, self._audience(event), now, put_out_by(event))
        parts.receipts.note_own_event(event)
        self.pass_on(parts.intake.take(arrival, now), now)
        copies = Promises()
        self._spread(arrival, now, copies)
        if copies:
            self._out.committed.extend(copies)
        parts.relays.send([Parcel(event, verified.unit, parts.context.card)])

    def _audience(self, event: Event) -> tuple[AuthorId, ...]:
        """Return the people an event is meant for: joined at its control heads, without us and relays."""
        view = self._parts.control.view(self._parts.control.state_at(event.tail.control or ()))
        ours = self._parts.context.author
        return tuple(one for one in view.joined() if one != ours and not view.is_relay_person(one))

    def _note_acks(self, event: Event, now: float) -> None:
        """Enter the acknowledgements in an event into the ledger, and receipts that came before it."""
        parts = self._parts
        # Not its control heads or its predecessor: its author may know these before all that they follow.
        for had in (*(event.tail.deps or ()), *(event.tail.concurrent or ())):
            self._note_ack(event.author, had, now)
        for receipt in parts.receipts.naming(event.id):
            self._note_ack(receipt.card.person, event.id, now)

    def _show(self, each: Placed, now: float) -> None:
        """Deliver an accepted event; one that comes too late is only stored."""
        event, arrival = each.arrival.event, each.arrival
        parts = self._parts
        if each.position is not None:
            parts.subscriptions.hand_event(each.position, event)
        if arrival.source is not None:
            kind = Kind.STORED if each.late or event.kind == GROUP else Kind.DELIVERED
            whose = (parts.id, event.id, event.device, event.seq)
            source, hops = arrival.source, arrival.hops
            is_ahead = event.time > now * 1000 + parts.config.future_ms
            note = f"{event.kind}: its time is ahead of our clock" if is_ahead else event.kind
            self._out.committed.record(Record(kind, *whose, peer=source, hops=hops, note=note))

    def _note_ack(self, person: AuthorId, event: EventId, now: float) -> None:
        if person == self._parts.context.author or not self._parts.dag.satisfies(event):
            return
        reach = self._parts.dag.reach(event)
        if reach >= 0:
            self._parts.ledger.note_ack(person, reach, now)

    def _tell_author(self, each: Placed) -> None:
        """Send its author the refusal of a hidden event, if the author itself sent the event."""
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
    """Return the person that an event removes from the room, if that is not its author."""
    if event.kind != MEMBER or event.tail.key in (None, member_key(event.author)):
        return None
    content = content_of(event.kind, event.body)
    is_out = isinstance(content, Member) and content.membership in (Membership.LEAVE, Membership.BAN)
    return person_of(event.tail.key or "") if is_out else None


_STRANGERS = 64
"""The most events of non-members that may wait for control events that we lack."""


class _NotGreeted(RemoteError):
    """Raised if a peer that is no known member sends what only members may."""


class Taking:
    """The door of one room: takes in units from peers, and refuses those that outsiders may not send."""

    def __init__(self, parts: Parts, passing: Passing) -> None:
        self._parts = parts
        self._out = parts.out
        self._passing = passing
        self._room = parts.id
        self.asked: dict[PeerId, None] = {}
        """Peers that show us the room while we join it."""
        self.heard_out: dict[PeerId, tuple[EventId, ...]] = {}
        """Peers that disagree with us about who is a member: we asked them for their control events
        beyond these heads."""
        self._strangers: dict[PeerId, EventId] = {}
        """By peer, the membership event of a non-member that waits for events it builds on."""

    def take(
        self,
        units: Iterable[Unverified],
        cards: Iterable[Card],
        source: PeerId,
        now: float,
        hops: int = 1,
        age_us: int = 0,
    ) -> None:
        """Take in units from a peer, in whichever message they came."""
        # Events that were hidden come before events that may follow them.
        self._passing.reveal_future()
        known = self.heeds(source) or source in self.heard_out
        for card in cards:
            if not known and card.device_key != source:
                continue  # A stranger may show only its own card, so that it cannot fill our book.
            try:
                self._parts.context.cards.learn(card)
            except RemoteError as error:
                self._out.record(
                    Record(Kind.REJECTED, self._room, peer=source, reason=error.reason, note="card")
                )
                self._out.blame(source, error.reason)
        for unit in units:
            self._take_one(unit, source, hops, age_us, now)

    def _take_one(self, unit: Unverified, source: PeerId, hops: int, age_us: int, now: float) -> None:
        try:
            head = unit_head(unit)
            if self._parts.intake.knows(head):
                whose = (self._room, head, unit.device, unit.seq)
                self._out.record(Record(Kind.DUPLICATE, *whose, peer=source, hops=hops))
                return
            if not self.heeds(source) and source not in self.heard_out:
                self._is_own(unit, source)
            checked = self._parts.context.doubt(self._parts.intake.places.checked(unit), now)
            arrival = Arrival(checked, source, hops, age_us)
            self._at_the_door(arrival, source, now)
        except InvalidEvent as error:
            self._reject_forged(source, unit, error)
            return
        except RemoteError as error:
            # Refuse the peer, not the event: it may come again from a peer that has greeted.
            about = None if isinstance(error, _NotGreeted) else unit
            self.refuse(source, about, error.reason, error.detail)
            self._out.blame(source, error.reason)
            return
        event = arrival.event
        whose = (self._room, event.id, event.device, event.seq)
        self._out.record(Record(Kind.RECEIVED, *whose, peer=source, hops=hops, note=event.kind))
        if event.kind != GROUP:  # A relay lets operations on keys go, and names none.
            parts = self._parts
            relay = source if parts.control.view().is_relay(source) else None
            parts.evidence.note_event(event.id, event.author, parts.relays.up, relay, now)
        self._passing.pass_on(self._parts.intake.take(arrival, now), now)

    def heeds(self, source: PeerId) -> bool:
        """Return whether a peer has greeted in the room, or was asked by us."""
        return source in self._parts.guests.by_peer or self._is_asked(source)

    def handle_link_down(self, peer: PeerId) -> None:
        """Forget a peer whose link is gone."""
        self.asked.pop(peer, None)
        self.heard_out.pop(peer, None)

    def reject_unasked(self, peer: PeerId, what: str) -> None:
        """Record a message of a peer outside the room, which is neither processed nor answered."""
        self._out.record(Record(Kind.REJECTED, self._room, peer=peer, reason=Reason.NOT_A_MEMBER, note=what))

    def _is_own(self, unit: Unverified, source: PeerId) -> None:
        """Raise unless the unit is of the stranger's own device; no signature is checked yet."""
        card = self._parts.context.cards.find(unit.author, unit.device)
        if card is None or card.device_key != source:
            raise _NotGreeted(Reason.NOT_A_MEMBER, "greet first")

    def _at_the_door(self, arrival: Arrival, source: PeerId, now: float) -> None:
        """Raise `RemoteError` unless the source may send this event.

        An outsider may send one thing: its own membership, if it is allowed right now. A revoked device may
        contest that by a revocation of its own, which resolution judges: a room without a relay has no other
        door for it. A refused event leaves nothing behind. One event of each outsider may wait until it can
        be judged.
        """
        if self.heeds(source):
            return
        event, control = arrival.event, self._parts.control
        if source in self.heard_out and event.kind in CONTROL_KINDS:
            return
        view = control.view()
        joins = event.kind == MEMBER and event.tail.key == member_key(event.author)
        contests = event.kind == REVOCATION and view.is_revoked(event.author, event.device)
        if not joins and not contests:
            banned = view.membership(event.author) is Membership.BAN
            raise _NotGreeted(Reason.BANNED if banned else Reason.NOT_A_MEMBER, "greet first")
        content = content_of(event.kind, event.body)
        if isinstance(content, Member) and content.ticket is not None:
            check_unexpired(content.ticket, now)
        if control.missing(event.tail.control or ()):
            self._wait(event.id, source)
            return
        refusal = control.judge(event) or control.doubt(event)
        if refusal is not None:
            raise RemoteError(refusal.reason, refusal.rule)

    def _wait(self, event: EventId, source: PeerId) -> None:
        waits = self._parts.intake.order.waits
        self._strangers = {peer: own for peer, own in self._strangers.items() if waits(own)}
        if source in self._strangers or len(self._strangers) >= _STRANGERS:
            raise RemoteError(Reason.QUEUE_FULL, "it builds on what is not known here")
        self._strangers[source] = event

    def _is_asked(self, source: PeerId) -> bool:
        """Return whether we asked this peer ourselves: a relay, or one that shows us the room as we join."""
        return self._parts.control.view().is_relay(source) or source in self.asked

    def _reject_forged(self, source: PeerId, unit: Unverified, error: InvalidEvent) -> None:
        record = Record(
            Kind.REJECTED,
            self._room,
            device=unit.device,
            seq=unit.seq,
            peer=source,
            reason=error.reason,
            note=error.detail[:100],
        )
        self._out.record(record)
        self._out.blame(source, error.reason)

    def refuse(self, peer: PeerId, unit: Unverified | None, reason: Reason, detail: str) -> None:
        """Tell a peer why we refuse its event, or, without an event, why we tell it nothing."""
        event = None if unit is None else unit_head(unit)
        self._out.record(
            Record(Kind.REJECTED, self._room, event, peer=peer, reason=reason, note=detail[:100])
        )
        self._out.send(peer, Refused(self._room, event, reason, detail[:200]))
