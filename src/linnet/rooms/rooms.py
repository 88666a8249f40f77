"""All rooms of a node: the application's commands, the peers' messages, the links, the timers."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from linnet.core.errors import Refused
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp
from linnet.core.reasons import Reason
from linnet.delivery.causal_messages import Beyond, Further, Given, Reconcile, Want
from linnet.delivery.commands import Consumed, Declined, Done, Unsubscribe
from linnet.delivery.messages import Data
from linnet.delivery.recovery import RecoveryDue
from linnet.machine.commands import BLOCKED_HERE
from linnet.machine.part import Part, on_command, on_input, on_message, on_notice, on_timer
from linnet.overlay.notices import JoinRefused, NeighborDown, NeighborUp, OverlayNotice, StorageKnown
from linnet.rooms.announcing import AnnounceDue
from linnet.rooms.chunk_offers import OfferDue
from linnet.rooms.chunks import ChunkDue, FetchDue
from linnet.rooms.commands import AskRelay, ExamineRelay, ExamineRooms, JoinRoom, NotePerson
from linnet.rooms.delivery_ledger import DeadlineDue
from linnet.rooms.encryption.group_maintenance import AcksDue, KeyUpdateDue, ParkedDue, TurnDue
from linnet.rooms.entering import Entering
from linnet.rooms.head_sync import SyncDue
from linnet.rooms.messages import (
    AskControl,
    ChunkIs,
    ChunkPut,
    ChunkTaken,
    ChunkWant,
    ControlPage,
    Greet,
    RelayAnswer,
    RelayAsk,
    RelayForward,
    RelayInfo,
    RelaySend,
    RelayTaken,
    Resync,
    ResyncPage,
    RoomMessage,
    RoomReceipt,
)
from linnet.rooms.messages import Refused as RefusedMessage
from linnet.rooms.receipts import ReceiptDue
from linnet.rooms.registry import Registry
from linnet.rooms.relay.relay import Relay
from linnet.rooms.relay_reading import LookDue, PageDue
from linnet.rooms.relay_sending import BatchDue
from linnet.rooms.relay_use import LingerDue, RelayChoiceDue, RelayLinkDue, RotationDue
from linnet.rooms.results import RoomsAre, RoomStatus
from linnet.rooms.room import Room
from linnet.rooms.room_commands import Desk
from linnet.rooms.room_setup import Setting
from linnet.rooms.room_store import keep_note
from linnet.rooms.status import status_of
from linnet.trace.records import Kind, Record

_NO_RELAY = "this node is no relay"


class Rooms(Part):
    """Every room that this node is in, and those that it serves as a relay."""

    def __init__(self, setting: Setting, relay: Relay | None, blocked: Container[PeerId] = ()) -> None:
        """`blocked` are peers whose questions to the relay are not answered, by whichever way they come."""
        self._context = setting.context
        self._out = setting.out
        self._registry = Registry(setting)
        self.desk = Desk(self._registry)
        """Hears what the application asks of rooms, beside this part."""
        self._entering = Entering(self._registry, self.desk)
        self._relay = relay
        self._blocked = blocked

    def holds(self, topic: TopicId) -> bool:
        """Whether a topic is a room of this node."""
        return topic in self._registry

    def start(self, now: float) -> None:
        """Open every room of before, and turn to whoever is in them."""
        self._registry.reopen(now)
        for room in self._registry:
            room.is_open = True
            room.start(now)
            room.settle(now)
        if self._relay is not None:
            self._relay.start(now)

    def stop(self, now: float) -> None:
        """Answer whoever waits, and let go."""
        for joining in list(self.desk.joining.values()):
            self.desk.end_join(joining, Declined(Reason.SHUTDOWN, "the node stops"), now)
        for adding in list(self.desk.adding.values()):
            self.desk.end_relay_question(adding)
        for room in self._registry:
            room.is_open = False
            room.stop(now)

    # Commands, beside those that the desk hears.

    @on_command(ExamineRooms)
    def examine_rooms(self, request: int, command: ExamineRooms, now: float) -> None:
        """Tell how every room stands."""
        self._out.reply(request, RoomsAre(self.status()))

    @on_command(ExamineRelay)
    def examine_relay(self, request: int, command: ExamineRelay, now: float) -> None:
        """Tell all that this node knows as a relay."""
        if self._relay is None:
            raise Refused(Reason.NOT_A_RELAY, _NO_RELAY)
        self._out.reply(request, self._relay.examine())

    @on_command(AskRelay)
    def ask_relay(self, request: int, command: AskRelay, now: float) -> None:
        """Answer a request to this relay that comes by another way than a link."""
        if command.peer in self._blocked:
            raise Refused(Reason.BLOCKED, BLOCKED_HERE)
        if self._relay is None:
            raise Refused(Reason.NOT_A_RELAY, _NO_RELAY)
        self._out.committed.reply(request, self._relay.ask(command, now))

    @on_command(NotePerson)
    def note_person(self, request: int, command: NotePerson, now: float) -> None:
        """Keep a note of our own on a person."""
        keep_note(self._context.store.cells, command.person, command.note)
        self._out.committed.reply(request, Done())

    @on_command(JoinRoom)
    def join_room(self, request: int, command: JoinRoom, now: float) -> None:
        """Join a room, unless this node serves it as a relay."""
        if self._relay is not None and self._relay.serves(command.room):
            raise Refused(Reason.IN_USE, "this node is a relay of that room")
        self.desk.join_room(request, command, now)

    def reads(self, subscription: int) -> bool:
        """Whether a subscription is one of a room."""
        return subscription in self._registry.by_subscription

    @on_command(Unsubscribe)
    def handle_unsubscribe(self, request: int, command: Unsubscribe, now: float) -> None:
        """End a subscription of a room."""
        room = self._registry.by_subscription.pop(command.subscription)
        room.parts.readers.remove(command.subscription)
        self._out.committed.reply(request, Done())

    @on_command(Consumed)
    def handle_consumed(self, request: int, command: Consumed, now: float) -> None:
        """Hand on what waits, now that items were handled."""
        room = self._registry.by_subscription[command.subscription]
        room.parts.readers.handle_consumed(command.subscription, command.items)
        self._out.committed.reply(request, Done())

    def status(self) -> tuple[RoomStatus, ...]:
        """How every room stands."""
        served = () if self._relay is None else self._relay.status()
        return (*map(status_of, self._registry), *served)

    def company(self) -> list[tuple[TopicId, tuple[PeerId, ...], tuple[PeerId, ...]]]:
        """Of each room, who has greeted and is here, relays among them, and who was met before."""
        if self._registry.setting.only is not None:
            return []  # On the edge nobody is told where others are.
        own = [
            (room.id, (*room.neighbors.online, *room.neighbors.relays_here), room.neighbors.met)
            for room in self._registry
            if room.is_active
        ]
        return own if self._relay is None else [*own, *self._relay.company()]

    # What other parts tell.

    def try_address(self, room: TopicId, contact: Contact, now: float) -> None:
        """Try a device of a room where it may be dialled, as it says itself."""
        known = self._registry.get(room)
        if known is None or not known.is_active:
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
        """Speak of these rooms on local networks, beside their relays: this node is on the edge."""
        known, wanted = self._registry.setting.nearby, dict.fromkeys(nearby)
        if known == wanted:
            return
        known.clear()
        known.update(wanted)
        for room in self._registry:
            room.settle_nearby(now)
            room.settle(now)

    @on_notice(NeighborUp)
    def handle_neighbor_up(self, notice: NeighborUp, now: float) -> None:
        """Tell a room of a new neighbour in its overlay."""
        self._tell_room(notice, now)

    @on_notice(NeighborDown)
    def handle_neighbor_down(self, notice: NeighborDown, now: float) -> None:
        """Tell a room that a neighbour in its overlay is gone."""
        self._tell_room(notice, now)

    @on_notice(StorageKnown)
    def handle_storage_known(self, notice: StorageKnown, now: float) -> None:
        """Tell a room which nodes keep its topic."""
        self._tell_room(notice, now)

    @on_notice(JoinRefused)
    def handle_join_refused(self, notice: JoinRefused, now: float) -> None:
        """Tell a room that no tracker takes it."""
        self._tell_room(notice, now)

    def _tell_room(self, notice: OverlayNotice, now: float) -> None:
        self._act(notice.topic, now, lambda room: room.handle_notice(notice, now))

    # Links.

    @on_input(LinkUp)
    def handle_link_up(self, event: LinkUp, now: float) -> None:
        """Tell every room that a link is open, and ask over it what waits for it."""
        for room in self._registry:
            room.handle_link_up(event.peer, now)
            room.settle(now)
        for joining in self.desk.joining.values():
            joining.handle_link_up(event.peer)
        for adding in self.desk.adding.values():
            if adding.contact.peer == event.peer:
                adding.ask()
        if self._relay is not None:
            self._relay.handle_link_up(event.peer)

    @on_input(LinkDown)
    def handle_link_down(self, event: LinkDown, now: float) -> None:
        """Tell every room that a link is gone."""
        for room in self._registry:
            room.handle_link_down(event.peer, now)
            room.settle(now)
        for joining in self.desk.joining.values():
            joining.handle_link_down(event.peer)
        if self._relay is not None:
            self._relay.handle_link_down(event.peer)

    @on_input(DialFailed)
    def handle_dial_failed(self, event: DialFailed, now: float) -> None:
        """Tell every room that a link could not be opened."""
        for room in self._registry:
            room.handle_dial_failed(event.peer, event.reason, now)
            room.settle(now)

    # Messages.

    @on_message(Data)
    def handle_data(self, peer: PeerId, data: Data, now: float) -> None:
        """Take an event of a room, on its way among those who are online."""
        topic = data.unit.topic
        if topic in self._registry and self._registry.setting.is_kept_from(peer, topic):
            self._record_kept(peer, topic)
        else:
            self._act(topic, now, lambda room: room.handle_data(peer, data, now))

    @on_message(Greet)
    def handle_greet(self, peer: PeerId, message: Greet, now: float) -> None:
        """Meet somebody who says that it is of a room."""
        self._hear(peer, message, message.room, now, lambda room: room.handle_greet(peer, message, now))

    @on_message(RefusedMessage)
    def handle_refused(self, peer: PeerId, message: RefusedMessage, now: float) -> None:
        """Note that a peer does not take an event of ours, or has nothing to say to us."""
        self._hear(peer, message, message.room, now, lambda room: room.handle_refused(peer, message, now))

    @on_message(Want)
    def handle_want(self, peer: PeerId, message: Want, now: float) -> None:
        """Give events to somebody who lacks them."""
        self._hear(peer, message, message.topic, now, lambda room: room.answering.handle_want(peer, message))

    @on_message(Given)
    def handle_given(self, peer: PeerId, message: Given, now: float) -> None:
        """Take events that a room asked for."""
        self._hear(
            peer, message, message.topic, now, lambda room: room.catching_up.handle_given(peer, message, now)
        )

    @on_message(Beyond)
    def handle_beyond(self, peer: PeerId, message: Beyond, now: float) -> None:
        """Give somebody what lies beyond its heads."""
        self._hear(
            peer, message, message.topic, now, lambda room: room.answering.handle_beyond(peer, message)
        )

    @on_message(Further)
    def handle_further(self, peer: PeerId, message: Further, now: float) -> None:
        """Take a page of what lies beyond our heads."""
        self._hear(
            peer,
            message,
            message.topic,
            now,
            lambda room: room.catching_up.handle_further(peer, message, now),
        )

    @on_message(Reconcile)
    def handle_reconcile(self, peer: PeerId, message: Reconcile, now: float) -> None:
        """Answer a step of reconciliation."""
        self._hear(
            peer,
            message,
            message.topic,
            now,
            lambda room: room.catching_up.handle_reconcile(peer, message, now),
        )

    @on_message(AskControl)
    def handle_ask_control(self, peer: PeerId, message: AskControl, now: float) -> None:
        """Show control events to somebody who may see them."""
        self._hear(
            peer,
            message,
            message.room,
            now,
            lambda room: room.answering.handle_ask_control(peer, message, now),
        )

    @on_message(ControlPage)
    def handle_control_page(self, peer: PeerId, message: ControlPage, now: float) -> None:
        """Take control events that a room asked for."""
        self._hear(
            peer,
            message,
            message.room,
            now,
            lambda room: room.catching_up.handle_control_page(peer, message, now),
        )

    @on_message(RoomReceipt)
    def handle_receipt(self, peer: PeerId, message: RoomReceipt, now: float) -> None:
        """Take somebody's word of how far it is."""
        self._hear(peer, message, message.room, now, lambda room: room.handle_receipt(peer, message, now))

    @on_message(RelayTaken)
    def handle_relay_taken(self, peer: PeerId, message: RelayTaken, now: float) -> None:
        """Note what became of a batch at a relay."""
        self._hear(
            peer, message, message.room, now, lambda room: room.relays.handle_taken(peer, message, now)
        )

    @on_message(ResyncPage)
    def handle_resync_page(self, peer: PeerId, message: ResyncPage, now: float) -> None:
        """Take a page of a relay."""
        self._hear(peer, message, message.room, now, lambda room: room.relays.handle_page(peer, message, now))

    @on_message(ChunkWant)
    def handle_chunk_want(self, peer: PeerId, message: ChunkWant, now: float) -> None:
        """Give pieces of attachments to a member."""
        self._hear(
            peer,
            message,
            message.room,
            now,
            lambda room: room.chunks.handle_want(peer, message, peer in room.guests.by_peer),
        )

    @on_message(ChunkIs)
    def handle_chunk(self, peer: PeerId, message: ChunkIs, now: float) -> None:
        """Take a piece of an attachment."""
        self._hear(
            peer, message, message.room, now, lambda room: room.chunks.handle_chunk(peer, message, now)
        )

    @on_message(ChunkTaken)
    def handle_chunk_taken(self, peer: PeerId, message: ChunkTaken, now: float) -> None:
        """Note whether a relay has taken a piece."""
        self._hear(
            peer, message, message.room, now, lambda room: room.chunks.handle_taken(peer, message, now)
        )

    @on_message(RelayAnswer)
    def handle_relay_answer(self, peer: PeerId, message: RelayAnswer, now: float) -> None:
        """Take the answer of a relay that was asked to serve a room."""
        adding = self.desk.adding.get(message.room + peer)
        if not self._is_for_others(peer, message, message.room, now) and adding is not None:
            self.desk.handle_relay_answer(adding, message, now)

    @on_message(RelaySend)
    def handle_relay_send(self, peer: PeerId, message: RelaySend, now: float) -> None:
        """Keep events as a relay."""
        self._hear(peer, message, message.room, now, lambda room: self._reject(room, peer, message))

    @on_message(RelayForward)
    def handle_relay_forward(self, peer: PeerId, message: RelayForward, now: float) -> None:
        """Keep events of another relay as a relay."""
        self._hear(peer, message, message.room, now, lambda room: self._reject(room, peer, message))

    @on_message(Resync)
    def handle_resync(self, peer: PeerId, message: Resync, now: float) -> None:
        """Give a page as a relay."""
        self._hear(peer, message, message.room, now, lambda room: self._reject(room, peer, message))

    @on_message(RelayAsk)
    def handle_relay_ask(self, peer: PeerId, message: RelayAsk, now: float) -> None:
        """Serve a room as a relay."""
        self._hear(peer, message, message.room, now, lambda room: self._reject(room, peer, message))

    @on_message(ChunkPut)
    def handle_chunk_put(self, peer: PeerId, message: ChunkPut, now: float) -> None:
        """Keep a piece as a relay."""
        self._hear(peer, message, message.room, now, lambda room: self._reject(room, peer, message))

    @on_message(RelayInfo)
    def handle_relay_info(self, peer: PeerId, message: RelayInfo, now: float) -> None:
        """Tell how this relay is doing, or note how another is."""
        if not message.request:
            for room in self._registry:
                room.relays.note_info(peer, message)
        elif self._relay is not None:
            self._relay.handle_info(peer, message, now)

    def _hear(
        self,
        peer: PeerId,
        message: RoomMessage,
        topic: TopicId,
        now: float,
        handle: Callable[[Room], None],
    ) -> None:
        """Give a message to the room that it is about, unless it is for somebody else."""
        if self._is_for_others(peer, message, topic, now):
            return
        room = self._registry.get(topic)
        if room is None:
            self._reject_unknown(peer, topic, message)
            return
        handle(room)
        room.settle(now)

    def _is_for_others(self, peer: PeerId, message: RoomMessage, topic: TopicId, now: float) -> bool:
        """Whether the relay here or a join that is under way takes a message, or nobody may.

        It is then given to whoever takes it.
        """
        if self._registry.setting.is_kept_from(peer, topic):
            self._record_kept(peer, topic)
            return True
        asks = topic not in self._registry and isinstance(message, RelayAsk | Greet)
        if self._relay is not None and (asks or self._relay.serves(topic)):
            self._relay.handle_message(peer, message, now)
            return True
        joining = self.desk.joining.get(topic)
        return joining is not None and self._entering.handle(joining, peer, message, now)

    def _record_kept(self, peer: PeerId, room: TopicId) -> None:
        note = "a room that is not allowed on this local network"
        self._out.record(Record(Kind.REJECTED, room, peer=peer, reason=Reason.NOT_ALLOWED, note=note))

    def _reject(self, room: Room, peer: PeerId, message: RoomMessage) -> None:
        """Record what only a relay takes."""
        note = f"{type(message).__name__}: this node is no relay of it"
        self._out.record(Record(Kind.REJECTED, room.id, peer=peer, reason=Reason.NOT_A_RELAY, note=note))

    def _reject_unknown(self, peer: PeerId, topic: TopicId, message: RoomMessage) -> None:
        """Record a message about a room that we are not in, and say so to whoever asks or greets."""
        out, unknown = self._out, Reason.UNKNOWN_ROOM
        out.record(Record(Kind.REJECTED, topic, peer=peer, reason=unknown, note=type(message).__name__))
        match message:
            case AskControl(_, request):
                out.send(peer, ControlPage(topic, request, (), (), False, (), (), unknown))
            case Resync(_, request):
                out.send(peer, ResyncPage(topic, request, (), (), (), (), None, False, None, (), unknown))
            case RelaySend(_, request) | RelayForward(_, request):
                out.send(peer, RelayTaken(topic, request, (), unknown))
            case RelayAsk(_, request):
                answer = RelayAnswer(topic, request, Reason.NOT_A_RELAY, self._context.author)
                out.send(peer, answer)
            case Greet():
                out.send(peer, RefusedMessage(topic, None, unknown, "this node is not in that room"))
            case _:
                pass

    # Timers.

    @on_timer(AnnounceDue)
    def tell_heads(self, timer: AnnounceDue, now: float) -> None:
        """Tell members of a room how far we are."""
        self._act(timer.room, now, lambda room: room.announcing.tell_heads())

    @on_timer(SyncDue)
    def end_stalled_sync(self, timer: SyncDue, now: float) -> None:
        """End a synchronisation that makes no progress."""
        self._act(timer.room, now, lambda room: room.sync.handle_timeout(timer.peer))

    @on_timer(RecoveryDue)
    def ask_for_missing(self, timer: RecoveryDue, now: float) -> None:
        """Ask for events that a room lacks."""
        self._act(timer.topic, now, lambda room: room.intake.order.handle_timer(now, room.parts.sources))

    @on_timer(DeadlineDue)
    def handle_deadline(self, timer: DeadlineDue, now: float) -> None:
        """Look whether an event of ours has arrived everywhere."""
        self._act(timer.room, now, lambda room: room.handle_deadline(timer.seq))

    @on_timer(ReceiptDue)
    def give_receipt(self, timer: ReceiptDue, now: float) -> None:
        """Give our receipt of a room."""
        self._act(timer.room, now, lambda room: room.receipts.give_receipt(room.parts.sources, now))

    @on_timer(RotationDue)
    def rotate_relays(self, timer: RotationDue, now: float) -> None:
        """Choose other relays of a room."""
        self._act(timer.room, now, lambda room: room.relays.rotate(now))

    @on_timer(RelayChoiceDue)
    def choose_relays(self, timer: RelayChoiceDue, now: float) -> None:
        """Choose again among the relays of a room."""
        self._act(timer.room, now, lambda room: room.relays.choose_again(now))

    @on_timer(RelayLinkDue)
    def pass_over_lost_relay(self, timer: RelayLinkDue, now: float) -> None:
        """Pass over a relay whose link is still down."""
        self._act(timer.room, now, lambda room: room.relays.handle_lasting_loss(timer.relay, now))

    @on_timer(LingerDue)
    def let_go_of_relay(self, timer: LingerDue, now: float) -> None:
        """Let go of a relay that is used no more."""
        self._act(timer.room, now, lambda room: room.relays.end_lingering(timer.relay))

    @on_timer(LookDue)
    def look_at_relay(self, timer: LookDue, now: float) -> None:
        """See whether the last page of a relay was lost."""
        self._act(timer.room, now, lambda room: room.relays.look(timer.relay))

    @on_timer(PageDue)
    def pass_over_slow_relay(self, timer: PageDue, now: float) -> None:
        """Pass over a relay that has sent no page."""
        self._act(timer.room, now, lambda room: room.relays.handle_silence(timer.relay, now))

    @on_timer(BatchDue)
    def pass_over_silent_relay(self, timer: BatchDue, now: float) -> None:
        """Pass over a relay that has not said what became of a batch."""
        self._act(timer.room, now, lambda room: room.relays.handle_silence(timer.relay, now))

    @on_timer(AcksDue)
    def say_acks(self, timer: AcksDue, now: float) -> None:
        """Say the acknowledgements that a group is owed."""
        self._act(timer.room, now, lambda room: room.guard(lambda guarding: guarding.say_acks(now)))

    @on_timer(KeyUpdateDue)
    def renew_keys(self, timer: KeyUpdateDue, now: float) -> None:
        """Renew the keys of a room."""
        self._act(timer.room, now, lambda room: room.guard(lambda guarding: guarding.renew_keys(now)))

    @on_timer(ParkedDue)
    def decline_parked(self, timer: ParkedDue, now: float) -> None:
        """Decline commands that have waited for keys too long."""
        self._act(timer.room, now, lambda room: room.guard(lambda guarding: guarding.decline_parked(now)))

    @on_timer(TurnDue)
    def take_turn(self, timer: TurnDue, now: float) -> None:
        """See whether something is ours to do for a group."""
        self._act(timer.room, now, lambda room: room.guard(lambda guarding: guarding.take_turn(now)))

    @on_timer(ChunkDue)
    def ask_for_chunk(self, timer: ChunkDue, now: float) -> None:
        """Ask another for a piece that was not given in time."""
        self._act(timer.room, now, lambda room: room.chunks.handle_silence(timer.digest))

    @on_timer(FetchDue)
    def end_fetch(self, timer: FetchDue, now: float) -> None:
        """Decline a command that has waited for a piece too long."""
        self._act(timer.room, now, lambda room: room.chunks.end_request(timer.request))

    @on_timer(OfferDue)
    def offer_again(self, timer: OfferDue, now: float) -> None:
        """Offer pieces again that a relay did not answer."""
        self._act(timer.room, now, lambda room: room.chunks.offers.handle_timeout(timer.relay, now))

    def _act(self, topic: TopicId, now: float, act: Callable[[Room], None]) -> None:
        """Have a room do something, and whatever follows, if it is here."""
        room = self._registry.get(topic)
        if room is not None:
            act(room)
            room.settle(now)
