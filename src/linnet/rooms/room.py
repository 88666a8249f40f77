"""One room at a member, which acts on changes of its state, and the registry of a node's rooms.

A room that was left stays here until another peer knows of the leave, or until that took too long; the
application does not see it any more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import assert_never

from msgspec import Struct

from linnet.core.errors import Refused, RemoteError
from linnet.core.ids import AuthorId, Contact, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Entry, Store
from linnet.delivery.items import RelayFaulty
from linnet.delivery.messages import Data
from linnet.event.event import Verified
from linnet.event.signing import decode_unit, encode_unit, recall_unit, unit_head
from linnet.identity.text import Sort, to_text
from linnet.machine.commands import Declined
from linnet.machine.outbox import Notice
from linnet.overlay.notices import NeighborUp, OverlayNotice
from linnet.rooms.auth.room_state import RETENTION_KEY, View
from linnet.rooms.backfill import BackfillClient, BackfillServer
from linnet.rooms.commands import RelaysCompared
from linnet.rooms.config import RelayLimits
from linnet.rooms.encryption.group_maintenance import GroupMaintenance
from linnet.rooms.event_flow import Passing, Taking
from linnet.rooms.event_positions import Arrival, Draft
from linnet.rooms.event_types import (
    CONTROL_KINDS,
    CREATE,
    GROUP,
    MEMBER,
    RELAY,
    Member,
    Membership,
    Retention,
    body_of,
    member_key,
)
from linnet.rooms.handshake import Handshake, HeadAnnouncements
from linnet.rooms.invitations import Ticket
from linnet.rooms.messages import (
    AskStatements,
    Greet,
    RelayProof,
    RoomReceipt,
    RoomTimer,
    RoomTopicMessage,
    StatementsAre,
)
from linnet.rooms.messages import Refused as RefusedMessage
from linnet.rooms.relay_client.census import LISTED, RelayCensus
from linnet.rooms.relay_client.evidence import FaultFound, SpreadFault
from linnet.rooms.relay_client.relay_client import RelayNotice
from linnet.rooms.relay_client.relay_session import (
    QUEUE_EVENTS,
    Behind,
    Forgot,
    GiveMissing,
    GiveUnsent,
    Kept,
    NotKept,
    Page,
    Parcel,
)
from linnet.rooms.room_setup import Parts, Setting
from linnet.trace.records import Kind, Record

KEPT_FOR = RelayLimits().max_lifetime
"""Seconds for which relays keep an event where the room decides nothing."""
JOINED = "joined"
LEFT = "left"
"""Notes of the records by which a trace shows when this node was in a room."""


class DepartureOver(Notice, frozen=True, gc=False):
    """A room that the application has left can be forgotten: another peer knows of the leave."""

    room: TopicId


class _Seen(Struct):
    """The state of a room when it last acted on changes."""

    control: tuple[EventId, ...] = ()
    events: int = 0
    relays: tuple[PeerId, ...] = ()
    joined: dict[AuthorId, None] = {}
    is_present: bool = False
    is_active: bool = False


class Room(Parts):
    """A room that this node is in, was in, or is joining."""

    def __init__(self, create: Verified, setting: Setting) -> None:
        super().__init__(create, setting)
        self.passing = Passing(self)
        self.taking = Taking(self, self.passing)
        self.handshake = Handshake(self, self.passing, self.taking)
        self.announcements = HeadAnnouncements(self, self.handshake)
        self.backfill_server = BackfillServer(self, self.taking)
        self.backfill_client = BackfillClient(self, self.passing, self.taking)
        self._relay_notices = RelayNotices(self, self.passing, self.taking)
        self.maintenance = None if self.group is None else GroupMaintenance(self, self.passing, self.group)
        """The maintenance of the room's keys; None if it is not encrypted."""
        self._seen = _Seen()
        self.is_open = True
        """Whether the node runs. False once it stops: as its links close one by one, nothing begins again."""

    @property
    def view(self) -> View:
        """The current state."""
        return self.control.view()

    @property
    def membership(self) -> Membership:
        """Our own membership."""
        return self.view.membership(self.context.author)

    @property
    def is_active(self) -> bool:
        """Whether we have joined the room."""
        return self.membership is Membership.JOIN

    @property
    def is_present(self) -> bool:
        """Whether others should find us: we have joined, or have left and no other peer knows it, or cannot
        tell because control events are damaged."""
        return self.is_active or self.memory.leaving or self.memory.lacks_control

    @property
    def is_departed(self) -> bool:
        """Whether the application has left: the room stays here only until another peer knows it."""
        return self.memory.departed_at is not None

    @property
    def is_revoked(self) -> bool:
        """Whether this device was revoked in the room."""
        return self.view.is_revoked(self.context.author, self.context.device)

    @property
    def others(self) -> int:
        """The number of other people who have joined the room, without relays."""
        view, ours = self.view, self.context.author
        return sum(one != ours and not view.is_relay_person(one) for one in view.joined())

    @property
    def owes_leave(self) -> bool:
        """Whether we have left, no other peer is known to know it, and there is one that should."""
        somebody = self.others > 0 or self.neighbors.knows_device_of(self.context.author)
        return self.memory.leaving and somebody

    def begin(self, create: Verified, now: float) -> None:
        """Take the first event of a room that is new here."""
        self.intake.take(Arrival(create, None, 0, 0), now)
        self.note_event(create.events[0])

    def load(self, now: float) -> None:
        """Read the room back from the store."""
        placed = self.recall(now)
        self._seen.control = self.control.heads
        self._seen.joined = dict.fromkeys(self.view.joined())
        self._seen.events = len(self.dag)
        self._seen.is_present, self._seen.is_active = self.is_present, self.is_active
        self.passing.pass_on(placed, now)
        self.settle(now)

    def settle(self, now: float) -> None:
        """Act on notices of the relay client and on a changed state, until nothing more follows."""
        while True:
            self._handle_notices(now)
            before = self.out.mark()
            if self.is_open:
                self._act_on_changes(now)
            if self.out.mark() == before:
                return

    def _handle_notices(self, now: float) -> None:
        """Act on notices of the relay client; the effects of each take the place of the notice."""
        if not self.out.notices:
            return
        for said in self.out.take_said():
            if isinstance(said, RelayNotice):
                self._relay_notices.handle(said, now)
                self._handle_notices(now)  # The effects of one notice come before the next.
            elif isinstance(said, Notice):
                self.out.notify(said)
            else:
                self.out.add(said)

    # Links.

    def start(self, now: float) -> None:
        """Dial all known members and relays at once; the first that answers is used."""
        if not self.is_present:
            return
        named = self._named_relays()
        self.neighbors.set_relays(named, now)
        self.neighbors.start(now)
        self.dismissals.start()
        self.ledger.start(now)
        self.relays.set_relays(named, now)
        for peer in self.context.links:
            self.handle_link_up(peer, now)
        self.announcements.arm(self.config.announce_period)

    def stop(self, now: float) -> None:
        """Release all links: the node stops, or we have left."""
        self._seen.is_present = False
        self.guests.by_peer.clear()
        self.flood.neighbors.clear()
        self.sync.stop()
        self.receipts.stop()
        self.relays.stop()
        self.evidence.stop()
        self.dismissals.stop()
        self.neighbors.stop(now)
        self.chunks.stop()
        self.announcements.stop()
        if self.maintenance is not None:
            self.maintenance.stop()

    def decline_waiting(self) -> None:
        """Decline the commands that still wait: the application has left."""
        self.chunks.stop()
        if self.maintenance is not None:
            self.maintenance.stop()

    def handle_link_up(self, peer: PeerId, now: float) -> None:
        """Greet a device that is known to be of the room, now that its link is open."""
        if not self.is_present or peer == self.context.peer:
            return
        if peer in self.dismissals:
            self.handshake.dismiss(peer)
            self.announcements.arm(self.config.announce_delay)  # By then the relay knows.
        elif self.neighbors.knows(peer) or self.view.is_relay(peer):
            # A greeting first: a peer answers requests only if it knows the asker.
            self.handshake.approach(peer)
        self.relays.handle_link_up(peer, now)

    def handle_link_down(self, peer: PeerId, now: float) -> None:
        """Forget all that concerns the open link of a device, now that it is gone."""
        self.guests.handle_link_down(peer)
        self.flood.unlinked(peer)
        self.backfill_server.handle_link_down(peer)
        self.taking.handle_link_down(peer)
        self.handshake.handle_link_down(peer)
        self.backfill_client.forget_pages(peer)
        self.intake.order.remove_source(peer, now)
        self.sync.handle_link_down(peer)
        self.evidence.handle_link_down(peer)
        self.neighbors.handle_link_down(peer, now)
        self.relays.handle_link_down(peer, now)
        self.chunks.remove_source(peer, now)

    def handle_greet(self, peer: PeerId, greet: Greet, now: float) -> None:
        """Admit a peer that greets as a member or relay of the room, or refuse it."""
        was_here = peer in self.guests.by_peer
        if not self.is_present and not self.handshake.is_unaware_of_leave(peer, greet):
            self.handshake.answer_outside(peer, greet)
            return
        try:
            guest = self.guests.admit(peer, greet, now)
        except RemoteError as error:
            if self.memory.lacks_control:
                self.handshake.ask_control(peer)
                return
            self.taking.refuse(peer, None, error.reason, error.detail)
            self.handshake.ask_former_member(peer, greet, error.reason)
            return
        if not guest.relay:
            self.flood.up(peer)
            contact = Contact(peer, greet.hints)
            self.neighbors.handle_greeting(peer, contact, guest.person, now)
        self.neighbors.add(greet.contacts, now)
        if self.handshake.is_due(peer, greet):
            self.handshake.greet(peer, answer=True)
        if not guest.greeted:
            guest.greeted = True
            for receipt in self.receipts.all():
                self.out.committed.send(peer, receipt)
            if guest.compares:
                self.evidence.greet(peer, (relay for relay, _ in self.view.relays()))
        if not was_here:
            self.intake.order.add_source(peer, now)
            self.backfill_client.ask_back(peer, now)
        if not guest.relay and all(map(self.dag.satisfies, guest.heads)):
            self.memory.newcomer = False  # We have all events that this member has.
        self.sync.compare(peer, guest)

    # Events of others.

    def handle_data(self, peer: PeerId, data: Data, now: float) -> None:
        """Take in an event that a peer floods."""
        cards = () if data.card is None else (data.card,)
        self.taking.take((data.unit,), cards, peer, now, data.hops, data.age_us)
        if peer not in self.guests.by_peer and self.is_active:
            self.handshake.answer_stranger(peer, data)

    # Requests and answers.

    def handle_refused(self, peer: PeerId, message: RefusedMessage, now: float) -> None:
        """Note that a peer refuses an event of ours, or refuses us."""
        guest = self.guests.by_peer.get(peer)
        note = message.detail[:100]
        self.out.record(
            Record(Kind.DROPPED, self.id, message.event, peer=peer, reason=message.reason, note=note)
        )
        if guest is not None and message.event is not None and not self._is_given_back(message.event):
            self.ledger.note_refusal(message.event, guest.person, message.reason, now)
        if message.event is None and self.view.is_relay(peer):
            self.relays.handle_refusal(peer, message.reason, now)
        known = guest is not None or self.neighbors.knows(peer) or self.view.is_relay(peer)
        known = known or peer in self.taking.asked
        if message.event is None and self.is_present and known:
            self.handshake.answer_refusal(peer, message.reason, now)

    def _is_given_back(self, event: EventId) -> bool:
        """Return whether who refuses an event shows it, or will once they know what is silenced."""
        return bool(self.control.silenced) and self.intake.is_allowed_now(event)

    def handle_receipt(self, peer: PeerId, receipt: RoomReceipt, now: float) -> None:
        """Take in the receipt of a member."""
        if peer in self.guests.by_peer:
            self.passing.handle_receipt(peer, receipt, now)
        else:
            self.taking.reject_unasked(peer, "RoomReceipt")

    def reject_as_no_relay(self, peer: PeerId, message: RoomTopicMessage, now: float) -> None:
        """Record a message that only a relay of the room takes."""
        note = f"{type(message).__name__}: this node is no relay of it"
        self.out.record(Record(Kind.REJECTED, self.id, peer=peer, reason=Reason.NOT_A_RELAY, note=note))

    # Our own membership.

    def leave(self, now: float) -> Declined | None:
        """Leave the room if we have joined it; return why the leave cannot be published, if so."""
        if not self.is_active:
            return None
        _, declined = self.passing.say(self.membership_drafts(Membership.LEAVE), now)
        self.settle(now)
        return declined

    def membership_drafts(self, membership: Membership, ticket: Ticket | None = None) -> list[Draft]:
        """Draft the event that sets our own membership."""
        key = member_key(self.context.author)
        return [Draft(MEMBER, key, body_of(Member(membership, None, ticket)))]

    def introduce(self, to: PeerId | None, heads: tuple[EventId, ...], now: float) -> None:
        """Show our join or knock to the peer that has shown us the room up to these heads, and greet it."""
        if self.is_active:
            self.start(now)
        if to is None or self.view.is_relay(to):
            return
        self.handshake.show_membership(to, heads, now)
        self.out.committed.send(to, self.handshake.greeting(answer=False))

    def introduce_again(self, to: PeerId, heads: tuple[EventId, ...], now: float) -> None:
        """Show our join once more: no peer has answered, as the join or the answer may be lost."""
        if not self.view.is_relay(to):
            self.handshake.show_membership(to, heads, now)
            self.handshake.greet(to, answer=False)

    def handle_question(self, peer: PeerId, asked: AskStatements, now: float) -> None:
        """Show a member what a relay has signed to us."""
        if peer in self.guests.members:
            self.evidence.handle_question(peer, asked)
        else:
            self.taking.reject_unasked(peer, "AskStatements")

    def handle_statements(self, peer: PeerId, answer: StatementsAre, now: float) -> None:
        """Compare what a relay has signed to a member with what it has signed to us."""
        if peer in self.guests.members:
            self.evidence.handle_answer(peer, answer, now)
        else:
            self.taking.reject_unasked(peer, "StatementsAre")

    def handle_proof(self, peer: PeerId, proof: RelayProof, now: float) -> None:
        """Take in a member's proof against a relay."""
        if peer in self.guests.members:
            self.evidence.handle_proof(peer, proof, self.view.is_relay(proof.relay), now)
        else:
            self.taking.reject_unasked(peer, "RelayProof")

    # Timers.

    def compare_relays(self, now: float) -> None:
        """Ask members about events that our relays have not shown."""
        self.evidence.handle_timer(self.guests.by_peer, now)

    def compare_relays_now(self, old: PeerId, new: PeerId, now: float) -> RelaysCompared:
        """Go on with the comparison of two relays, or begin it, and tell how far it is."""
        census = self.relays.census
        if census is None or (census.old, census.new) != (old, new):
            census = RelayCensus(old, new, self._events_for_relays(now))
            self.relays.begin_census(census, now)
        lacking = census.lacking()
        if census.at_new.is_whole:
            parcels = map(self.passing.parcel, lacking[:QUEUE_EVENTS])
            self.relays.go_on_with_census([each for each in parcels if each is not None], now)
        else:
            self.relays.go_on_with_census((), now)
        wanted = census.wanted()
        reasons = Counter(reason.value for event, reason in census.at_new.refused.items() if event in wanted)
        return RelaysCompared(
            self.id,
            len(wanted),
            sum(event in census.at_new for event in wanted),
            len(lacking),
            tuple(lacking[:LISTED]),
            dict(reasons),
            census.at_old.is_whole,
            census.at_new.is_whole,
            old in self.context.links,
            new in self.context.links,
            self.evidence.signs(old),
            self.evidence.signs(new),
        )

    def _events_for_relays(self, now: float) -> list[EventId]:
        """Return the events of our log that a relay of the room may still keep, by their times."""
        fact = self.view.get(RETENTION_KEY)
        longest = KEPT_FOR
        if fact is not None and isinstance(fact.content, Retention):
            kept = fact.content.max_lifetime_ms
            longest = float("inf") if kept is None else kept / 1000
        found = []
        for verified in self.memory.events():
            event = verified.events[0]
            oldest = now - (KEPT_FOR if event.kind == GROUP else longest)
            is_kept = event.kind in CONTROL_KINDS or event.time / 1000 > oldest
            if is_kept and event.kind != CREATE and self.memory.is_shown(event.id):
                found.append(event.id)
        return found

    def handle_deadline(self, seq: int) -> None:
        """Tell subscribers if an event of ours has not arrived everywhere by its deadline."""
        late = self.ledger.handle_deadline(seq)
        if late is not None:
            self.subscriptions.tell_notice(late)

    def maintain_group(self, act: Callable[[GroupMaintenance, float], None], now: float) -> None:
        """Maintain the room's group of keys; a refusal undoes the step and is recorded."""
        if self.maintenance is None:
            return
        before = self.out.mark()
        try:
            act(self.maintenance, now)
        except Refused as error:
            self.out.forget_since(before)
            note = f"group: {error.detail[:80]}"
            self.out.record(Record(Kind.DROPPED, self.id, reason=error.reason, note=note))

    def handle_dial_failed(self, peer: PeerId, reason: Reason, now: float) -> None:
        """Try other devices or relays in the place of one that could not be dialled."""
        self.neighbors.handle_dial_failed(peer, now)
        self.relays.handle_dial_failed(peer, reason, now)

    def handle_notice(self, notice: OverlayNotice, now: float) -> None:
        """Note an overlay's notice of neighbours, and greet a new one."""
        self.neighbors.handle_notice(notice, now)
        if isinstance(notice, NeighborUp) and notice.peer not in self.guests.by_peer:
            self.handshake.approach(notice.peer)

    def settle_nearby(self, now: float) -> None:
        """Apply a change of the rooms that are allowed on local networks: drop or greet the devices there."""
        there = self.neighbors.beside
        self.neighbors.settle(now)
        beside = self.neighbors.beside
        for peer in there if not beside else ():
            self.handle_link_down(peer, now)
        for peer in beside:
            if peer not in there:
                self.handshake.approach(peer)

    # Reactions to a change of state.

    def _act_on_changes(self, now: float) -> None:
        """Act on changes of the state, of the links and of the history."""
        if self.relays.up != self._seen.relays:
            self._seen.relays = self.relays.up
            self.chunks.offers.use_relays(self._seen.relays, now)
        if self.memory.overflowed and 2 * len(self.intake.order) <= self.config.waiting_events:
            self.memory.overflowed = False
            self.passing.pass_on(self.intake.offer_again(now), now)
            self.relays.read_anew()
        self.passing.reveal_future()
        grown = len(self.dag) > self._seen.events
        self._seen.events = len(self.dag)
        if grown and self.is_present:
            self.announcements.arm(self.config.announce_delay)
        changed = self.control.heads != self._seen.control
        self._seen.control = self.control.heads
        if changed:
            self._expel(now)
            self._note_own_membership()
        if not self.is_present:
            self._stop_if_left(now)
            return
        if not self._seen.is_present:
            self._seen.is_present = True
            self.start(now)
        if not self.memory.lacks_control and self.silenced(now) is None:
            self._leave_again(now)
            if self.maintenance is not None:
                self.maintenance.act_on_changes(now)
        if not changed:
            return
        for peer, greet in self.guests.take_admitted():
            self.handle_greet(peer, greet, now)
        named = self._named_relays()
        self._dismiss(named, now)
        self.neighbors.set_relays(named, now)
        self.relays.set_relays(named, now)

    def _stop_if_left(self, now: float) -> None:
        """Stop if we have not stopped yet: we have left, and another peer knows it."""
        if self._seen.is_present:
            self.stop(now)
            if self.is_departed:
                self.out.notify(DepartureOver(self.id))

    def _dismiss(self, named: tuple[Contact, ...], now: float) -> None:
        """Seek the relays that this device dropped: one that is offline has to be told."""
        view, dismissals = self.view, self.dismissals
        for contact in named:
            dismissals.remove(contact.peer)
        still = {contact.peer for contact in named}
        for relay in self.relays.status():
            if relay.relay in still:
                continue
            put_out = view.relay_of(relay.relay)  # It is named, but its person is no member any more.
            place = RELAY, to_text(Sort.DEVICE, relay.relay)
            fact = view.get(place if put_out is None else (MEMBER, member_key(put_out.person)))
            if fact is not None and fact.device == self.context.device:
                dismissals.add(Contact(relay.relay, relay.hints), fact.id, now)

    def _leave_again(self, now: float) -> None:
        """Publish our leave again if its event was damaged on our disk and no other peer had it."""
        if not (self.is_departed and self.is_active):
            return
        own = self.view.get((MEMBER, member_key(self.context.author)))
        if own is not None and own.device == self.context.device:
            self.passing.say(self.membership_drafts(Membership.LEAVE), now)

    def _note_own_membership(self) -> None:
        """Note whether we have left by an event of this device, which others have to learn before we stop."""
        own = self.view.get((MEMBER, member_key(self.context.author)))
        memory = self.memory
        if self.is_active:
            memory.leaving = False
            if self.is_departed and own is not None and own.device != self.context.device:
                self.out.notify(DepartureOver(self.id))  # Another device of ours joined, and knows of it.
        elif self._seen.is_active and own is not None and own.device == self.context.device:
            memory.leaving = self.membership is Membership.LEAVE and own.sender == self.context.author
            if memory.leaving:
                self.announcements.arm(self.config.announce_delay)  # Answers show whether a peer knows it.
        if self.is_active != self._seen.is_active:
            self._seen.is_active = self.is_active
            self.out.record(Record(Kind.CONTROL, self.id, note=JOINED if self.is_active else LEFT))

    def _expel(self, now: float) -> None:
        """Drop the receipts, devices and links of people who are no longer in the room."""
        joined = dict.fromkeys(self.view.joined())
        for person in self._seen.joined:
            if person not in joined and person != self.context.author:
                self.receipts.forget(person)
                self.neighbors.expel(person, now)
        for person in joined:
            if person not in self._seen.joined:
                self.neighbors.admit(person, now)
        self._seen.joined = joined
        for peer in self.guests.expel_outsiders():
            self.flood.down(peer)
            self.backfill_server.handle_link_down(peer)
            self.sync.handle_link_down(peer)
            self.intake.order.remove_source(peer, now)
            self.chunks.remove_source(peer, now)
            self.neighbors.expel(peer, now)

    def _named_relays(self) -> tuple[Contact, ...]:
        """Return the relays that the state names and that have joined: before that they cannot serve."""
        view = self.view
        return tuple(
            Contact(peer, relay.hints)
            for peer, relay in view.relays()
            if view.membership(relay.person) is Membership.JOIN
        )


class RelayNotices:
    """Acts on the notices of one room's relay client."""

    def __init__(self, parts: Parts, passing: Passing, taking: Taking) -> None:
        self._parts = parts
        self._passing = passing
        self._taking = taking

    def handle(self, notice: RelayNotice, now: float) -> None:
        """Act on a notice, which may cause further notices."""
        parts, relays = self._parts, self._parts.relays
        match notice:
            case Page():
                self._take_page(notice, now)
            case GiveUnsent(relay, limit):
                unsent = [each for each in parts.ledger.unkept() if relays.takes(relay, each)]
                relays.send_unsent(relay, self._parcels(unsent[:limit]), len(unsent) > limit)
            case GiveMissing(relay, event, missing):
                relays.send_missing(relay, event, self._parcels(missing))
            case Behind(relay, heads):
                beyond = parts.control.between(heads)[: parts.config.page_events]
                relays.send_to(relay, self._parcels(beyond), now)
                if not heads:
                    # It refused us: it lacks our join, or it knows why we were removed from the room.
                    parts.sync.ask_control(relay, parts.context.card)
            case Kept(relay, event):
                if event == parts.author.prev:
                    parts.memory.leaving = False  # If we have left, the leave is our last event.
                parts.ledger.note_kept((event,), relay, now)
            case NotKept(relay, event, reason):
                parts.ledger.note_relay_refusal(event, relay, reason, now)
            case Forgot(relay):
                parts.ledger.note_loss(relay, now)
            case FaultFound() | SpreadFault():
                self._tell_fault(notice, now)
            case _:
                assert_never(notice)

    def _tell_fault(self, notice: FaultFound | SpreadFault, now: float) -> None:
        """Tell the application of a proof against a relay and use others first, or pass the proof on."""
        parts = self._parts
        if isinstance(notice, FaultFound):
            item = RelayFaulty(parts.id, notice.relay, notice.reason, notice.event)
            parts.subscriptions.tell_notice(item)
            parts.relays.choose(now)
            return
        for peer, guest in parts.guests.by_peer.items():
            if guest.compares and peer != notice.source:
                parts.out.committed.send(peer, notice.proof)

    def _take_page(self, page: Page, now: float) -> None:
        self._taking.take(page.units, page.cards, page.relay, now)
        for receipt in page.receipts:
            self._passing.handle_receipt(page.relay, receipt, now)
        for gone in page.tombstones:
            self._parts.ledger.note_expiry((gone.event,), page.relay, gone.reason, now)
        parts = self._parts
        given = {unit_head(unit) for unit in page.units} if page.named else ()
        hidden = [each for each in page.named if each not in given and not parts.intake.knows(each)]
        if hidden:
            note = "a relay names an event as shown that it does not give"
            whose = (parts.id, hidden[0])
            parts.out.record(
                Record(Kind.REJECTED, *whose, peer=page.relay, reason=Reason.WITHHELD, note=note)
            )
            parts.relays.handle_withholding(page.relay, now)
        parts.relays.confirm_page(page, parts.control.heads)
        parts.relays.note_silenced(page.relay, parts.control.silenced_at(page.control))

    def _parcels(self, events: Iterable[EventId]) -> list[Parcel]:
        parcels = map(self._passing.parcel, events)
        return [parcel for parcel in parcels if parcel is not None]


_ROOMS = "room.open"


class DepartureEndDue(RoomTimer, frozen=True, gc=False):
    """Timer: no other peer that should know of our leave was reached in time."""


def _write_create(store: Store, create: Verified) -> None:
    """Write a room's first event into its damaged place in the log."""
    event, room = create.events[0], TopicId(create.head)
    at = store.log.kept(room).oldest or 0.0
    raw = encode_unit(create.unit)
    store.log.append(Entry(room, event.author, event.device, event.seq, 1, event.id, at, raw))


class RoomRegistry:
    """The open rooms of a node."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.by_id: dict[TopicId, Room] = {}
        self.by_subscription: dict[int, Room] = {}
        self.get = self.by_id.get
        """Return the room of an id, if it is open, else None."""

    def __iter__(self) -> Iterator[Room]:
        return iter(list(self.by_id.values()))

    def find(self, room: TopicId) -> Room | None:
        """Return the room of this id; None if it is not open, or the application has left it."""
        known = self.by_id.get(room)
        return None if known is None or known.is_departed else known

    def open(self, create: Verified, newcomer: bool, now: float) -> Room:
        """Open a room that is new to this node, or was forgotten while its log was kept."""
        store = self.setting.context.store
        was_here = store.log.get(create.head) is not None
        room = self.by_id[TopicId(create.head)] = Room(create, self.setting)
        store.cells.put(_ROOMS, room.id, encode_unit(create.unit))
        if was_here:
            room.load(now)
            return room
        room.memory.newcomer = newcomer
        room.begin(create, now)
        return room

    def reopen(self, now: float) -> None:
        """Read the rooms of the node back from the store."""
        store, out = self.setting.context.store, self.setting.out
        for key, copy in list(store.cells.scan(_ROOMS)):
            entry = store.log.get(EventId(key))
            if entry is None and not copy:
                note = "its create event is not in the store"
                out.record(Record(Kind.DROPPED, TopicId(key), note=note))
                continue
            create = recall_unit(decode_unit(copy if entry is None else entry.raw))
            if entry is None:
                _write_create(store, create)
                note = "its create event, mended by a copy"
                out.record(Record(Kind.RESYNC, TopicId(key), create.head, reason=Reason.DAMAGED, note=note))
            elif not copy:  # Stored by a version that made no copy of it.
                store.cells.put(_ROOMS, key, entry.raw)
            room = self.by_id[TopicId(key)] = Room(create, self.setting)
            room.load(now)
            if room.is_departed:
                self._set_timer(room, now)

    def depart(self, room: Room, now: float) -> float | None:
        """Forget a room that was left: at once, or when another peer knows of the leave.

        Returns the time until which this node waits for that; None if the room was forgotten at once.
        """
        if not room.owes_leave:
            self.forget(room, now)
            return None
        self._end_subscriptions(room)
        room.decline_waiting()
        room.memory.departed_at = now
        self._set_timer(room, now)
        return self.departure_end(room)

    def departure_end(self, room: Room) -> float:
        """Return the time at which to stop seeking a peer that should know of our leave."""
        return (room.memory.departed_at or 0.0) + room.config.leave_patience

    def end_departure(self, room: Room, now: float) -> None:
        """Forget a room that was left without any peer knowing it, if its time is over."""
        if self.departure_end(room) > now:
            self._set_timer(room, now)
            return
        note = "nobody was in reach who should hear that we left"
        self.setting.out.record(Record(Kind.EXPIRED, room.id, reason=Reason.TIMEOUT, note=note))
        self.forget(room, now)

    def forget(self, room: Room, now: float) -> None:
        """Close and forget a room; its log stays."""
        del self.by_id[room.id]
        self.setting.context.store.cells.delete(_ROOMS, room.id)
        room.stop(now)
        if room.is_departed:
            self.setting.out.cancel_timer(DepartureEndDue(room.id))
        room.memory.leaving, room.memory.departed_at = False, None
        room.dismissals.forget()
        self._end_subscriptions(room)

    def _set_timer(self, room: Room, now: float) -> None:
        # Never longer than the configured patience, whatever the clock says.
        left = min(self.departure_end(room) - now, room.config.leave_patience)
        self.setting.out.set_timer(max(left, 0.0), DepartureEndDue(room.id))

    def _end_subscriptions(self, room: Room) -> None:
        for subscription in [number for number, of in self.by_subscription.items() if of is room]:
            del self.by_subscription[subscription]
            room.subscriptions.remove(subscription)
