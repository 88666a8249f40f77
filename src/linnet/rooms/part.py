"""The part of a node that runs its rooms: messages of peers, links, timers, and commands about all rooms."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import TypeVar

from msgspec import Struct

from linnet.core.errors import Refused
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp
from linnet.core.reasons import Reason
from linnet.delivery.causal_barriers import RecoveryDue
from linnet.delivery.commands import Consumed, Unsubscribe
from linnet.delivery.messages import Beyond, Data, Further, Given, Reconcile, Want
from linnet.machine.commands import BLOCKED_HERE, Done
from linnet.machine.part import Part, on_command, on_input, on_message, on_notice, on_timer
from linnet.overlay.notices import JoinRefused, NeighborDown, NeighborUp, StorageKnown
from linnet.rooms.chunks import ChunkDue, FetchDue, OfferDue
from linnet.rooms.commands import (
    AskRelay,
    Departure,
    ExamineRelay,
    ExamineRooms,
    NotePerson,
    RoomsAre,
    RoomStatus,
)
from linnet.rooms.delivery_ledger import DeadlineDue
from linnet.rooms.encryption.group_maintenance import (
    AcksDue,
    GroupMaintenance,
    KeyUpdateDue,
    ParkedDue,
    TurnDue,
)
from linnet.rooms.event_checks import WithheldDue
from linnet.rooms.guests import reject_on_local_network, reject_unknown_room
from linnet.rooms.handshake import AnnounceDue
from linnet.rooms.head_sync import SyncDue
from linnet.rooms.join import Joins
from linnet.rooms.messages import (
    AskControl,
    AskStatements,
    ChunkIs,
    ChunkPut,
    ChunkTaken,
    ChunkWant,
    ControlPage,
    Greet,
    RelayAsk,
    RelayForward,
    RelayInfo,
    RelayProof,
    RelaySend,
    RelayTaken,
    Resync,
    ResyncPage,
    RoomReceipt,
    RoomTimer,
    RoomTopicMessage,
    StatementsAre,
)
from linnet.rooms.messages import Refused as RefusedMessage
from linnet.rooms.receipts import ReceiptDue
from linnet.rooms.relay.relay import Relay
from linnet.rooms.relay_client.evidence import CompareDue
from linnet.rooms.relay_client.relay_client import (
    CensusDue,
    LingerDue,
    RelayChoiceDue,
    RelayLinkDue,
    RotationDue,
)
from linnet.rooms.relay_client.relay_session import BatchDue, LookDue, PageDue
from linnet.rooms.room import DepartureEndDue, DepartureOver, Room, RoomRegistry
from linnet.rooms.room_commands import RoomCommands
from linnet.rooms.room_setup import Setting
from linnet.rooms.room_status import name_of, status_of
from linnet.rooms.room_store import keep_note
from linnet.trace.records import Kind, Record

_NO_RELAY = "this node is no relay"


class _RoomsHere(Struct, frozen=True):
    """The ids of the rooms that this node is in, was in, or is joining."""

    entered: Container[TopicId]
    joining: Container[TopicId]

    def __contains__(self, topic: object) -> bool:
        return topic in self.entered or topic in self.joining


M = TypeVar("M", bound=RoomTopicMessage)
T = TypeVar("T", bound=RoomTimer)
N = TypeVar("N", NeighborUp, NeighborDown, StorageKnown, JoinRefused)


def in_room(
    kind: type[M], act: Callable[[Room, PeerId, M, float], None]
) -> Callable[[Rooms, PeerId, M, float], None]:
    """Make a handler that passes messages about one room on to the room."""

    @on_message(kind)
    def handle(rooms: Rooms, peer: PeerId, message: M, now: float) -> None:
        rooms.hear(peer, message, now, lambda room: act(room, peer, message, now))

    return handle


def when_due(kind: type[T], act: Callable[[Room, T, float], None]) -> Callable[[Rooms, T, float], None]:
    """Make a handler that passes timers of one room on to the room."""

    @on_timer(kind)
    def handle(rooms: Rooms, timer: T, now: float) -> None:
        rooms.act(timer.room, now, lambda room: act(room, timer, now))

    return handle


def tell_room(kind: type[N]) -> Callable[[Rooms, N, float], None]:
    """Make a handler that passes notices of one room's overlay on to the room."""

    @on_notice(kind)
    def handle(rooms: Rooms, notice: N, now: float) -> None:
        rooms.act(notice.topic, now, lambda room: room.handle_notice(notice, now))

    return handle


class Rooms(Part):
    """Every room that this node is in: messages, links, timers, and commands about all of them.

    On a node that is a relay as well, its `Relay` gets the messages about rooms that it serves or does not
    know.
    """

    def __init__(self, setting: Setting, relay: Relay | None, blocked: Container[PeerId] = ()) -> None:
        """`blocked` are peers whose requests to the relay are refused, however they come."""
        self._context = setting.context
        self._out = setting.out
        self._registry = RoomRegistry(setting)
        self.commands = RoomCommands(self._registry)
        self.joins = Joins(self._registry, self._is_served)
        self.own_topics = _RoomsHere(self._registry.by_id, self.joins.by_room)
        self.own_subscriptions = self._registry.by_subscription
        self._relay = relay
        self._blocked = blocked

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts that rooms consist of, in the order in which they are told of links."""
        return (self, self.joins, self.commands)

    def _is_served(self, room: TopicId) -> bool:
        return self._relay is not None and self._relay.serves(room)

    def start(self, now: float) -> None:
        """Reopen the rooms of the store, and dial their members and relays."""
        self._registry.reopen(now)
        for room in self._registry:
            room.is_open = True
            room.start(now)
            room.settle(now)

    def stop(self, now: float) -> None:
        """Decline the waiting commands, and release all links."""
        self.joins.stop(now)
        self.commands.stop(now)
        for room in self._registry:
            room.is_open = False
            room.stop(now)

    # Commands about all rooms, or about the relay here.

    @on_command(ExamineRooms)
    def examine_rooms(self, request: int, command: ExamineRooms, now: float) -> None:
        """Reply with the status of every room."""
        self._out.reply(request, RoomsAre(self.status(), self.departures()))

    @on_command(ExamineRelay)
    def examine_relay(self, request: int, command: ExamineRelay, now: float) -> None:
        """Reply with all that this node knows as a relay."""
        if self._relay is None:
            raise Refused(Reason.NOT_A_RELAY, _NO_RELAY)
        self._out.reply(request, self._relay.examine())

    @on_command(AskRelay)
    def ask_relay(self, request: int, command: AskRelay, now: float) -> None:
        """Answer a request to this relay that came over HTTP instead of a link."""
        if command.peer in self._blocked:
            raise Refused(Reason.BLOCKED, BLOCKED_HERE)
        if self._relay is None:
            raise Refused(Reason.NOT_A_RELAY, _NO_RELAY)
        self._out.committed.reply(request, self._relay.ask(command, now))

    @on_command(NotePerson)
    def note_person(self, request: int, command: NotePerson, now: float) -> None:
        """Store a note of our own on a person."""
        keep_note(self._context.store.cells, command.person, command.note)
        self._out.committed.reply(request, Done())

    @on_command(Unsubscribe)
    def handle_unsubscribe(self, request: int, command: Unsubscribe, now: float) -> None:
        """End a subscription of a room."""
        room = self._registry.by_subscription.pop(command.subscription)
        room.subscriptions.remove(command.subscription)
        self._out.committed.reply(request, Done())

    @on_command(Consumed)
    def handle_consumed(self, request: int, command: Consumed, now: float) -> None:
        """Deliver further items to a subscription, now that the application has consumed some."""
        room = self._registry.by_subscription[command.subscription]
        room.subscriptions.handle_consumed(command.subscription, command.items)
        self._out.committed.reply(request, Done())

    def status(self) -> tuple[RoomStatus, ...]:
        """Return the status of every room."""
        served = () if self._relay is None else self._relay.status()
        own = (status_of(room) for room in self._registry if not room.is_departed)
        return (*own, *served)

    def departures(self) -> tuple[Departure, ...]:
        """Return the rooms that were left while no other peer is known to have received the leave."""
        return tuple(
            Departure(
                room.id,
                name_of(room),
                room.others,
                room.memory.departed_at or 0.0,
                self._registry.departure_end(room),
            )
            for room in self._registry
            if room.is_departed
        )

    def company(self) -> list[tuple[TopicId, tuple[PeerId, ...], tuple[PeerId, ...]]]:
        """Return for each room the peers that have greeted on open links, and those that were met before."""
        if self._registry.setting.only is not None:
            return []  # A node on the edge tells nobody the addresses of others.
        own = [
            (room.id, (*room.neighbors.online, *room.neighbors.relays_here), room.neighbors.met)
            for room in self._registry
            if room.is_active or room.is_departed
        ]
        return own if self._relay is None else [*own, *self._relay.company()]

    # Input from other parts.

    def try_address(self, room: TopicId, contact: Contact, now: float) -> None:
        """Dial a device of a room at the addresses that it gives for itself."""
        known = self._registry.get(room)
        if known is None or not (known.is_active or known.is_departed):
            return
        if known.view.is_relay(contact.peer):
            known.relays.try_address(contact, now)
            known.settle(now)
        else:
            known.neighbors.add((contact,), now)

    def note_rtt(self, peer: PeerId, seconds: float) -> None:
        """Note the measured round-trip time of a link."""
        for room in self._registry:
            room.relays.note_rtt(peer, seconds)

    def settle_nearby(self, nearby: Iterable[TopicId], now: float) -> None:
        """Allow these rooms on local networks: this node is on the edge."""
        known, wanted = self._registry.setting.nearby, dict.fromkeys(nearby)
        if known == wanted:
            return
        known.clear()
        known.update(wanted)
        for room in self._registry:
            room.settle_nearby(now)
            room.settle(now)

    @on_notice(DepartureOver)
    def handle_departure_over(self, notice: DepartureOver, now: float) -> None:
        """Forget a room that the application has left, now that another peer knows of the leave."""
        room = self._registry.get(notice.room)
        if room is not None and room.is_departed:
            self._registry.forget(room, now)

    handle_neighbor_up = tell_room(NeighborUp)
    handle_neighbor_down = tell_room(NeighborDown)
    handle_storage_known = tell_room(StorageKnown)
    handle_join_refused = tell_room(JoinRefused)

    # Links.

    @on_input(LinkUp)
    def handle_link_up(self, event: LinkUp, now: float) -> None:
        """Tell every room that a link is open."""
        for room in self._registry:
            room.handle_link_up(event.peer, now)
            room.settle(now)

    @on_input(LinkDown)
    def handle_link_down(self, event: LinkDown, now: float) -> None:
        """Tell every room that a link is gone."""
        for room in self._registry:
            room.handle_link_down(event.peer, now)
            room.settle(now)

    @on_input(DialFailed)
    def handle_dial_failed(self, event: DialFailed, now: float) -> None:
        """Tell every room that a link could not be opened."""
        for room in self._registry:
            room.handle_dial_failed(event.peer, event.reason, now)
            room.settle(now)

    # Messages.

    @on_message(Data)
    def handle_data(self, peer: PeerId, data: Data, now: float) -> None:
        """Take in an event that a peer floods in a room."""
        topic = data.unit.topic
        if topic in self._registry.by_id and self._registry.setting.is_kept_from(peer, topic):
            reject_on_local_network(self._out, peer, topic)
        else:
            self.act(topic, now, lambda room: room.handle_data(peer, data, now))

    handle_greet = in_room(Greet, Room.handle_greet)
    handle_refused = in_room(RefusedMessage, Room.handle_refused)
    handle_receipt = in_room(RoomReceipt, Room.handle_receipt)
    handle_want = in_room(Want, lambda room, peer, asked, _: room.backfill_server.handle_want(peer, asked))
    handle_beyond = in_room(
        Beyond, lambda room, peer, asked, _: room.backfill_server.handle_beyond(peer, asked)
    )
    handle_ask_control = in_room(
        AskControl, lambda room, *asked: room.backfill_server.handle_ask_control(*asked)
    )
    handle_given = in_room(Given, lambda room, *given: room.backfill_client.handle_given(*given))
    handle_further = in_room(Further, lambda room, *page: room.backfill_client.handle_further(*page))
    handle_reconcile = in_room(Reconcile, lambda room, *step: room.backfill_client.handle_reconcile(*step))
    handle_control_page = in_room(
        ControlPage, lambda room, *page: room.backfill_client.handle_control_page(*page)
    )
    handle_relay_taken = in_room(RelayTaken, lambda room, *taken: room.relays.handle_taken(*taken))
    handle_resync_page = in_room(ResyncPage, lambda room, *page: room.relays.handle_page(*page))
    handle_statements_question = in_room(AskStatements, Room.handle_question)
    handle_statements = in_room(StatementsAre, Room.handle_statements)
    handle_relay_proof = in_room(RelayProof, Room.handle_proof)
    handle_chunk_want = in_room(
        ChunkWant,
        lambda room, peer, asked, _: room.chunks.handle_want(peer, asked, peer in room.guests.by_peer),
    )
    handle_chunk = in_room(ChunkIs, lambda room, *piece: room.chunks.handle_chunk(*piece))
    handle_chunk_taken = in_room(ChunkTaken, lambda room, *taken: room.chunks.offers.handle_answer(*taken))

    # A member stores nothing for others: only a relay of the room takes these.

    handle_relay_send = in_room(RelaySend, Room.reject_as_no_relay)
    handle_relay_forward = in_room(RelayForward, Room.reject_as_no_relay)
    handle_resync = in_room(Resync, Room.reject_as_no_relay)
    handle_relay_ask = in_room(RelayAsk, Room.reject_as_no_relay)
    handle_chunk_put = in_room(ChunkPut, Room.reject_as_no_relay)

    @on_message(RelayInfo)
    def handle_relay_info(self, peer: PeerId, message: RelayInfo, now: float) -> None:
        """Send the load of this relay if asked for it, or note that of another relay."""
        if not message.request:
            for room in self._registry:
                room.relays.note_info(peer, message)
        elif self._relay is not None:
            self._relay.handle_info(peer, message, now)

    def hear(
        self, peer: PeerId, message: RoomTopicMessage, now: float, handle: Callable[[Room], None]
    ) -> None:
        """Pass a message on to its room, unless an unfinished join takes it."""
        topic = message.topic
        if self._registry.setting.is_kept_from(peer, topic):
            reject_on_local_network(self._out, peer, topic)
            return
        joining = self.joins.by_room.get(topic)
        if joining is not None and self.joins.handle_answer(joining, peer, message, now):
            return
        room = self._registry.get(topic)
        if room is not None:
            handle(room)
            room.settle(now)
        elif self._is_served(topic):
            note, reason = type(message).__name__, Reason.UNSUPPORTED  # Such messages are not for relays.
            self._out.record(Record(Kind.REJECTED, topic, peer=peer, reason=reason, note=note))
        else:
            reject_unknown_room(self._out, self._context.author, peer, message)

    # Timers.

    tell_heads = when_due(AnnounceDue, lambda room, _, now: room.announcements.tell_heads(now))
    end_stalled_sync = when_due(SyncDue, lambda room, timer, _: room.sync.handle_timeout(timer.peer))
    handle_deadline = when_due(DeadlineDue, lambda room, timer, _: room.handle_deadline(timer.seq))
    give_receipt = when_due(ReceiptDue, lambda room, _, now: room.receipts.give_receipt(room.sources, now))
    rotate_relays = when_due(RotationDue, lambda room, _, now: room.relays.rotate(now))
    choose_relays = when_due(RelayChoiceDue, lambda room, _, now: room.relays.choose(now))
    pass_over_lost_relay = when_due(
        RelayLinkDue, lambda room, timer, now: room.relays.handle_lasting_loss(timer.relay, now)
    )
    end_census = when_due(CensusDue, lambda room, _, now: room.relays.end_census(now))
    let_go_of_relay = when_due(LingerDue, lambda room, timer, _: room.relays.let_go(timer.relay))
    look_at_relay = when_due(LookDue, lambda room, timer, _: room.relays.look(timer.relay))
    pass_over_slow_relay = when_due(
        PageDue, lambda room, timer, now: room.relays.handle_silence(timer.relay, now)
    )
    pass_over_silent_relay = when_due(
        BatchDue, lambda room, timer, now: room.relays.handle_silence(timer.relay, now)
    )
    say_acks = when_due(AcksDue, lambda room, _, now: room.maintain_group(GroupMaintenance.say_acks, now))
    renew_keys = when_due(
        KeyUpdateDue, lambda room, _, now: room.maintain_group(GroupMaintenance.renew_keys, now)
    )
    decline_parked = when_due(
        ParkedDue, lambda room, _, now: room.maintain_group(GroupMaintenance.decline_parked, now)
    )
    take_turn = when_due(TurnDue, lambda room, _, now: room.maintain_group(GroupMaintenance.take_turn, now))
    compare_relays = when_due(CompareDue, lambda room, _, now: room.compare_relays(now))
    ask_for_chunk = when_due(ChunkDue, lambda room, _, now: room.chunks.handle_timer(now))
    end_fetch = when_due(FetchDue, lambda room, timer, now: room.chunks.end_request(timer.request, now))
    offer_again = when_due(
        OfferDue, lambda room, timer, now: room.chunks.offers.handle_timeout(timer.relay, now)
    )

    judge_withheld = when_due(
        WithheldDue, lambda room, _, now: room.passing.pass_on(room.intake.end_waiting(now), now)
    )

    @on_timer(RecoveryDue)
    def ask_for_missing(self, timer: RecoveryDue, now: float) -> None:
        """Ask for events that a room lacks."""
        self.act(timer.topic, now, lambda room: room.intake.order.handle_timer(now, room.sources))

    @on_timer(DepartureEndDue)
    def give_up_departure(self, timer: DepartureEndDue, now: float) -> None:
        """Forget a room that we left, although for too long no other peer has received the leave."""
        room = self._registry.get(timer.room)
        if room is not None and room.is_departed:
            self._registry.end_departure(room, now)

    def act(self, topic: TopicId, now: float, act: Callable[[Room], None]) -> None:
        """Let a room act, and settle it; do nothing if it is not here."""
        room = self._registry.get(topic)
        if room is not None:
            act(room)
            room.settle(now)
