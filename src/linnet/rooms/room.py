"""One room at a member: what comes in, what goes out, who is there, and what its use of relays asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import assert_never

from linnet.core.errors import Refused, RemoteError
from linnet.core.ids import AuthorId, Contact, EventId, PeerId
from linnet.core.reasons import Reason
from linnet.delivery.messages import Data
from linnet.event.event import Verified
from linnet.machine.outbox import Notice
from linnet.overlay.notices import NeighborUp, OverlayNotice
from linnet.rooms.access.view import View
from linnet.rooms.announcing import Announcing
from linnet.rooms.answering import Answering
from linnet.rooms.arrival import Arrival
from linnet.rooms.catching_up import CatchingUp
from linnet.rooms.content import MEMBER, Member, Membership, body_of, member_key
from linnet.rooms.encryption.group_maintenance import Guarding
from linnet.rooms.event_flow import Passing
from linnet.rooms.governing import Draft
from linnet.rooms.meeting import Meeting
from linnet.rooms.messages import Greet, RoomReceipt
from linnet.rooms.messages import Refused as RefusedMessage
from linnet.rooms.relay_notices import (
    Behind,
    Forgot,
    GiveMissing,
    GiveUnsent,
    Kept,
    NotKept,
    Page,
    Parcel,
    RelayNotice,
)
from linnet.rooms.room_setup import Parts
from linnet.rooms.taking import Taking
from linnet.rooms.ticket import Ticket
from linnet.trace.records import Kind, Record

JOINED = "joined"
LEFT = "left"
"""Notes of the records by which a trace tells when this node was of a room."""


class Room:
    """A room that this node is in, was in, or is joining."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self._out = parts.out
        self.id = parts.id
        self.context = parts.context
        self.config = parts.config
        self.control = parts.control
        self.dag = parts.dag
        self.guests = parts.guests
        self.flood = parts.flood
        self.intake = parts.intake
        self.serving = parts.serving
        self.sync = parts.sync
        self.ledger = parts.ledger
        self.receipts = parts.receipts
        self.neighbors = parts.neighbors
        self.relays = parts.relays
        self.chunks = parts.chunks
        self.passing = Passing(parts)
        self.taking = Taking(parts, self.passing)
        self.meeting = Meeting(parts, self.passing, self.taking)
        self.announcing = Announcing(parts, self.meeting)
        self.answering = Answering(parts, self.taking)
        self.catching_up = CatchingUp(parts, self.passing, self.taking)
        self._relay_notices = RelayNotices(parts, self.passing, self.taking)
        secrecy = parts.secrecy
        self.guarding = None if secrecy is None else Guarding(parts, self.passing, secrecy)
        """The keeper of the room's keys; None if it is not encrypted."""
        self._seen_control: tuple[EventId, ...] = ()
        self._seen_events = 0
        self._seen_relays: tuple[PeerId, ...] = ()
        self._seen_joined: dict[AuthorId, None] = {}
        self._was_present = self._was_active = False
        self.is_open = True
        """Whether the node runs: once it stops nothing begins again, while its links go one by one."""

    @property
    def view(self) -> View:
        """The state as it is now."""
        return self.control.view()

    @property
    def membership(self) -> Membership:
        """How we stand to it."""
        return self.view.membership(self.context.author)

    @property
    def is_active(self) -> bool:
        """Whether we are in it."""
        return self.membership is Membership.JOIN

    @property
    def is_present(self) -> bool:
        """Whether others are to find us: we are in it, or have left and nobody knows it yet."""
        return self.is_active or self.parts.memory.leaving or self.parts.memory.lacks_control

    def begin(self, create: Verified, now: float) -> None:
        """Take the first event of a room that is new here."""
        self.intake.take(Arrival(create, None, 0, 0), now)
        self.parts.note_event(create.events[0])

    def load(self, now: float) -> None:
        """Read the room back from the store."""
        placed = self.parts.load(now)
        self._seen_control = self.control.heads
        self._seen_joined = dict.fromkeys(self.view.joined())
        self._seen_events = len(self.dag)
        self._was_present, self._was_active = self.is_present, self.is_active
        self.passing.pass_on(placed, now)
        self.settle(now)

    def settle(self, now: float) -> None:
        """Do what the use of relays asks for, and act on a changed state, until nothing follows."""
        while True:
            self._handle_notices(now)
            before = self._out.mark()
            if self.is_open:
                self._act_on_changes(now)
            if self._out.mark() == before:
                return

    def _handle_notices(self, now: float) -> None:
        """Do what the use of relays asks for; what comes of it stands where it was told."""
        if not self._out.has_notices:
            return
        for said in self._out.take_said():
            if isinstance(said, RelayNotice):
                self._relay_notices.handle(said, now)
                self._handle_notices(now)  # What comes of one comes before the next.
            elif isinstance(said, Notice):
                self._out.notify(said)
            else:
                self._out.add(said)

    # Links.

    def start(self, now: float) -> None:
        """Turn to everyone who is known: members and relays at once; the first that answers helps."""
        if not self.is_present:
            return
        named = self._named_relays()
        self.neighbors.set_relays(named, now)
        self.neighbors.start(now)
        self.ledger.start(now)
        self.relays.set_relays(named, now)
        for peer in self.context.links:
            self.handle_link_up(peer, now)
        self.announcing.arm(self.config.announce_period)

    def stop(self, now: float) -> None:
        """Let go of everyone."""
        self._was_present = False
        self.guests.by_peer.clear()
        self.flood.neighbors.clear()
        self.sync.stop()
        self.receipts.stop()
        self.relays.stop()
        self.neighbors.stop(now)
        self.chunks.stop()
        self.announcing.stop()
        if self.guarding is not None:
            self.guarding.stop()

    def handle_link_up(self, peer: PeerId, now: float) -> None:
        """Greet a device that is known to be of the room, now that its link is open."""
        if not self.is_present or peer == self.context.peer:
            return
        if self.neighbors.knows(peer) or self.view.is_relay(peer):
            # A greeting first: whoever is asked for something must know who asks.
            self.meeting.approach(peer)
        self.relays.handle_link_up(peer, now)

    def handle_link_down(self, peer: PeerId, now: float) -> None:
        """Go on without a device whose link is gone."""
        self.guests.down(peer)
        self.flood.unlinked(peer)
        self.serving.down(peer)
        self.taking.handle_link_down(peer)
        self.meeting.handle_link_down(peer)
        self.catching_up.forget_pages(peer)
        self.intake.order.remove_source(peer, now)
        self.sync.handle_link_down(peer)
        self.neighbors.handle_link_down(peer, now)
        self.relays.handle_link_down(peer, now)
        self.chunks.remove_source(peer)

    def handle_greet(self, peer: PeerId, greet: Greet, now: float) -> None:
        """Meet somebody who says that it is of the room."""
        was_here = peer in self.guests.by_peer
        if not self.is_present and not self.meeting.does_not_know(peer, greet):
            self.meeting.answer_outside(peer, greet)
            return
        try:
            guest = self.guests.greeted(peer, greet, now)
        except RemoteError as error:
            if self.parts.memory.lacks_control:
                self.meeting.ask_control(peer)
                return
            self.taking.refuse(peer, None, error.reason, error.detail)
            self.meeting.hear_out(peer, greet, error.reason)
            return
        if not guest.relay:
            self.flood.up(peer)
            contact = Contact(peer, greet.hints)
            self.neighbors.handle_greeting(peer, contact, guest.person, now)
        self.neighbors.add(greet.contacts, now)
        if self.meeting.is_due(peer, greet):
            self.meeting.greet(peer, answer=True)
        if not guest.greeted:
            guest.greeted = True
            for receipt in self.receipts.all():
                self._out.committed.send(peer, receipt)
        if not was_here:
            self.intake.order.add_source(peer, now)
            self.catching_up.ask_back(peer, now)
        if not guest.relay and all(map(self.dag.satisfies, guest.heads)):
            self.parts.memory.newcomer = False  # Whatever this member has, we have.
        self.sync.compare(peer, guest)
        self.chunks.add_source(peer)

    # Events of others.

    def handle_data(self, peer: PeerId, data: Data, now: float) -> None:
        """Take an event on its way among those who are online."""
        cards = () if data.card is None else (data.card,)
        self.taking.take((data.unit,), cards, peer, now, data.hops, data.age_us)
        if peer not in self.guests.by_peer and self.is_active:
            self.meeting.answer_stranger(peer, data)

    # Questions and answers.

    def handle_refused(self, peer: PeerId, message: RefusedMessage, now: float) -> None:
        """Note that a peer does not take an event of ours, or has nothing to say to us."""
        guest = self.guests.by_peer.get(peer)
        note = message.detail[:100]
        self._out.record(
            Record(Kind.DROPPED, self.id, message.event, peer=peer, reason=message.reason, note=note)
        )
        if guest is not None and message.event is not None:
            self.ledger.note_refusal(message.event, guest.person, message.reason, now)
        if message.event is None and self.view.is_relay(peer):
            self.relays.handle_refusal(peer, message.reason, now)
        known = guest is not None or self.neighbors.knows(peer) or self.view.is_relay(peer)
        known = known or peer in self.taking.asked
        if message.event is None and self.is_present and known:
            self.meeting.answer_refusal(peer, message.reason, now)

    def handle_receipt(self, peer: PeerId, receipt: RoomReceipt, now: float) -> None:
        """Take somebody's word of how far it is."""
        if peer in self.guests.by_peer:
            self.passing.handle_receipt(peer, receipt, now)
        else:
            self.taking.reject_unasked(peer, "RoomReceipt")

    # Joining.

    def joining_drafts(self, membership: Membership, ticket: Ticket | None) -> list[Draft]:
        """Our own membership."""
        key = member_key(self.context.author)
        return [Draft(MEMBER, key, body_of(Member(membership, None, ticket)))]

    def introduce(self, join: Verified, to: PeerId | None, now: float) -> None:
        """Show our join to whoever has shown us the room, and greet."""
        if self.is_active:
            self.start(now)
        if to is None or self.view.is_relay(to):
            return
        data = Data(join.unit, 1, 0, int(now * 1_000_000), self.context.card)
        self._out.committed.send(to, data)
        self._out.committed.send(to, self.meeting.greeting(answer=False))

    def introduce_again(self, to: PeerId, now: float) -> None:
        """Show our join once more: nobody has answered it, and it, or the answer, may be lost."""
        if not self.view.is_relay(to):
            self.meeting.show_join(to, now)
            self.meeting.greet(to, answer=False)

    # Timers.

    def handle_deadline(self, seq: int) -> None:
        """Tell whoever reads if an event of ours has not arrived everywhere by its deadline."""
        late = self.ledger.handle_deadline(seq)
        if late is not None:
            self.parts.readers.tell_overdue(late)

    def guard(self, act: Callable[[Guarding], None]) -> None:
        """See to the room's keys, if anything can be said."""
        if self.guarding is None:
            return
        before = self._out.mark()
        try:
            act(self.guarding)
        except Refused as error:
            self._out.forget_since(before)
            note = f"group: {error.detail[:80]}"
            self._out.record(Record(Kind.DROPPED, self.id, reason=error.reason, note=note))

    def handle_dial_failed(self, peer: PeerId, reason: Reason, now: float) -> None:
        """Turn to others, where a link could not be opened."""
        self.neighbors.handle_dial_failed(peer, now)
        self.relays.handle_dial_failed(peer, reason, now)

    def handle_notice(self, notice: OverlayNotice, now: float) -> None:
        """Approach a neighbour that an overlay names."""
        self.neighbors.handle_notice(notice, now)
        if isinstance(notice, NeighborUp) and notice.peer not in self.guests.by_peer:
            self.meeting.approach(notice.peer)

    def settle_nearby(self, now: float) -> None:
        """Follow a change of what may be said on local networks: where nothing may, those there are gone."""
        there = self.neighbors.beside
        self.neighbors.settle(now)
        beside = self.neighbors.beside
        for peer in there if not beside else ():
            self.handle_link_down(peer, now)
        for peer in beside:
            if peer not in there:
                self.meeting.approach(peer)

    # What follows from a change of state.

    def _act_on_changes(self, now: float) -> None:
        """Act on the state if it is another than before."""
        if self.relays.up != self._seen_relays:
            self._seen_relays = self.relays.up
            self.chunks.use_relays(self._seen_relays, now)
        if self.parts.memory.overflowed and 2 * len(self.intake.order) <= self.config.waiting_events:
            self.parts.memory.overflowed = False
            self.passing.pass_on(self.intake.offer_again(now), now)
            self.relays.read_anew()
        self.passing.reveal(now)
        grown = len(self.dag) > self._seen_events
        self._seen_events = len(self.dag)
        if grown and self.is_present:
            self.announcing.arm(self.config.announce_delay)
        changed = self.control.heads != self._seen_control
        self._seen_control = self.control.heads
        if changed:
            self._expel(now)
            self._look_at_ourselves()
        if not self.is_present:
            if self._was_present:
                self.stop(now)
            return
        if not self._was_present:
            self._was_present = True
            self.start(now)
        speaks = not self.parts.memory.lacks_control and self.parts.silenced(now) is None
        if self.guarding is not None and speaks:
            self.guarding.act_on_changes(now)
        if not changed:
            return
        for peer, greet in self.guests.admitted():
            self.handle_greet(peer, greet, now)
        named = self._named_relays()
        self.neighbors.set_relays(named, now)
        self.relays.set_relays(named, now)

    def _look_at_ourselves(self) -> None:
        """If we have left, by a word of this device, others have to learn it before we are gone."""
        own = self.view.get((MEMBER, member_key(self.context.author)))
        memory = self.parts.memory
        if self.is_active:
            memory.leaving = False
        elif self._was_active and own is not None and own.device == self.context.device:
            memory.leaving = self.membership is Membership.LEAVE and own.sender == self.context.author
        if self.is_active != self._was_active:
            self._was_active = self.is_active
            self._out.record(Record(Kind.CONTROL, self.id, note=JOINED if self.is_active else LEFT))

    def _expel(self, now: float) -> None:
        """Have nothing more to do with whoever is no longer of the room, here or away."""
        joined = dict.fromkeys(self.view.joined())
        for person in self._seen_joined:
            if person not in joined and person != self.context.author:
                self.receipts.forget(person)
                self.neighbors.expel(person, now)
        for person in joined:
            if person not in self._seen_joined:
                self.neighbors.admit(person, now)
        self._seen_joined = joined
        for peer in self.guests.expel():
            self.flood.down(peer)
            self.serving.down(peer)
            self.sync.handle_link_down(peer)
            self.intake.order.remove_source(peer, now)
            self.chunks.remove_source(peer)
            self.neighbors.expel(peer, now)

    def _named_relays(self) -> tuple[Contact, ...]:
        """Relays that are named and have joined: before that they cannot serve yet."""
        view = self.view
        return tuple(
            Contact(peer, relay.hints)
            for peer, relay in view.relays()
            if view.membership(relay.person) is Membership.JOIN
        )


class RelayNotices:
    """Acts on the notices of one room's use of relays."""

    def __init__(self, parts: Parts, passing: Passing, taking: Taking) -> None:
        self._parts = parts
        self._passing = passing
        self._taking = taking

    def handle(self, notice: RelayNotice, now: float) -> None:
        """Do what a notice asks for; further notices may come of it."""
        parts, relays = self._parts, self._parts.relays
        match notice:
            case Page():
                self._take_page(notice, now)
            case GiveUnsent(relay, limit):
                unsent = [each for each in parts.ledger.unkept() if relays.takes(relay, each)]
                relays.send_unsent(relay, self._parcels(unsent[:limit]), len(unsent) > limit, now)
            case GiveMissing(relay, event, missing):
                relays.send_missing(relay, event, self._parcels(missing), now)
            case Behind(relay, heads):
                beyond = parts.control.between(heads)[: parts.config.page_events]
                relays.send_to(relay, self._parcels(beyond), now)
                if not heads:
                    # It refused us: it lacks our join, or it knows why we are in the room no longer.
                    parts.sync.ask_control(relay, parts.context.card)
            case Kept(relay, event):
                if event == parts.author.prev:
                    parts.memory.leaving = False  # If we have left, this is what we said last.
                parts.ledger.note_kept((event,), relay, now)
            case NotKept(relay, event, reason):
                parts.ledger.note_relay_refusal(event, relay, reason, now)
            case Forgot(relay):
                parts.ledger.note_loss(relay, now)
            case _:
                assert_never(notice)

    def _take_page(self, page: Page, now: float) -> None:
        self._taking.take(page.units, page.cards, page.relay, now)
        for receipt in page.receipts:
            self._passing.handle_receipt(page.relay, receipt, now)
        for gone in page.tombstones:
            self._parts.ledger.note_expiry((gone.event,), page.relay, gone.reason, now)
        self._parts.relays.confirm_page(page, self._parts.control.heads, now)

    def _parcels(self, events: Iterable[EventId]) -> list[Parcel]:
        parcels = map(self._passing.parcel, events)
        return [parcel for parcel in parcels if parcel is not None]
