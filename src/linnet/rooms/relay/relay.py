"""The relay role of a node: every room that it serves, and those that it was asked to serve."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

import msgspec

from linnet.core.effects import AfterCommit, Send
from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.delivery.causal_messages import Beyond, Further, Given, Reconcile, Want
from linnet.delivery.context import Context
from linnet.identity.cards import Card
from linnet.machine.outbox import Outbox
from linnet.machine.part import Part, on_timer
from linnet.rooms.commands import AskRelay
from linnet.rooms.config import RelayConfig, RoomsConfig
from linnet.rooms.messages import (
    AskControl,
    ChunkIs,
    ChunkPut,
    ChunkTaken,
    ChunkWant,
    ControlPage,
    Greet,
    Refused,
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
from linnet.rooms.relay.access_control import Answer, Caller, Request, Visitors, refuse_request, relay_at
from linnet.rooms.relay.admission import AT_ONCE, Admission, AdmissionDue, LingerDue, RoomSweep, why_not_taken
from linnet.rooms.relay.control_fetch import FetchDue
from linnet.rooms.relay.event_cache import EventCache
from linnet.rooms.relay.forwarding import ForwardDue
from linnet.rooms.relay.relay_room import RelayRoom
from linnet.rooms.relay.retention import ExpiryDue
from linnet.rooms.relay.stored_chunks import StoredChunks
from linnet.rooms.relay.stored_receipts import StoredReceipts
from linnet.rooms.relay.usage import Budget
from linnet.rooms.results import RelayReplies, RelayReport, RoomStatus
from linnet.trace.records import Kind, Record

_ROOMS, _EPOCH = "relay.room", "relay.epoch"
_SERVING, _LEAVING = b"serving", b"leaving"
_OUTSIDE = (Reason.BANNED, Reason.NOT_INVITED)
"""Why somebody who was of a room does not see it any more."""
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[bytes, PeerId, tuple[Contact, ...]]).decode
_NOBODY = PeerId(b"")


class SweepDue(Timer, frozen=True, gc=False):
    """The next part is to be let go of a room that is not served any more."""

    room: TopicId


class Relay(Part):
    """All rooms that this node serves.

    Its timers come here by marks. Messages and links come from `linnet.rooms.rooms`, which knows by the topic
    whether a message is for the relay or for a member of the room.
    """

    def __init__(
        self, context: Context, config: RelayConfig, rooms: RoomsConfig, entropy: Entropy, out: Outbox
    ) -> None:
        self._context = context
        self._config = config
        self._rooms_config = rooms
        self._out = out
        self._budget = Budget(config.total_bytes)
        self.epoch = self._kept_epoch(entropy)
        """Cursors of another epoch are not ours: what we had then is lost."""
        self._rooms: dict[TopicId, RelayRoom] = {}
        self._leaving: dict[TopicId, RoomSweep] = {}
        self._admissions: dict[TopicId, Admission] = {}
        self._lingering: dict[TopicId, Admission] = {}
        self._visitors = Visitors(context)

    def start(self, now: float) -> None:
        """Go on with every room where the store left it."""
        for key, value in list(self._context.store.cells.scan(_ROOMS)):
            room, (state, asker, contacts) = TopicId(key), _decode(value)
            if state == _SERVING:
                self._rooms[room] = self._open(room)
                self._rooms[room].start(now)
                self._leave_if_dropped(room, now)
            elif state == _LEAVING:
                self._leaving[room] = self._remains(room)
                self._sweep_room(room)
            else:
                self._begin_admission(room, asker, contacts, now)

    def serves(self, room: TopicId) -> bool:
        """Whether what is said about this room is for us: we serve it, or are about to."""
        return room in self._rooms or room in self._admissions

    def handle_message(self, peer: PeerId, message: RoomMessage, now: float) -> None:
        """Handle whatever a peer says about a room that we serve, or asks us to serve."""
        match message:
            case Greet():
                self.handle_greet(peer, message, now)
            case RelayInfo():
                self.handle_info(peer, message, now)
            case RelayAsk():
                self.handle_ask(peer, message, now)
            case RoomReceipt():
                self.handle_receipt(peer, message, now)
            case RelayTaken():
                self.handle_taken(peer, message, now)
            case ControlPage():
                self.handle_control_page(peer, message, now)
            case Given():
                self.handle_given(peer, message, now)
            case RelaySend() | RelayForward() | Resync() | Want() | AskControl() | ChunkPut() | ChunkWant():
                self.handle_request(peer, message, now)
            case Refused():
                self.handle_refused(peer, message, now)
            case Beyond() | Further() | Reconcile():
                self.reject_message(peer, message.topic, message)
            case ResyncPage() | RelayAnswer() | ChunkIs() | ChunkTaken():
                self.reject_message(peer, message.room, message)
            case _:
                assert_never(message)

    def handle_link_up(self, peer: PeerId) -> None:
        """Turn to a peer whose link is open."""
        for room in self._rooms.values():
            room.handle_link_up(peer)
        for admitted in self._admissions.values():
            admitted.ask_contact(peer)

    def handle_link_down(self, peer: PeerId) -> None:
        """Forget what a peer is owed whose link is gone."""
        self._visitors.handle_link_down(peer)
        for room in self._rooms.values():
            room.handle_link_down(peer)

    def ask(self, asked: AskRelay, now: float) -> RelayReplies:
        """Answer a request that came by another way than a link.

        The replies promise something: give them after the commit.
        """
        message = asked.message
        if isinstance(message, RelayInfo):
            return RelayReplies((self._info(now),))
        answers = self._answer_request(Caller(asked.peer, asked.person, linked=False), message, now)
        return RelayReplies(tuple(each for each in answers if not isinstance(each, ChunkTaken | ChunkIs)))

    def status(self) -> tuple[RoomStatus, ...]:
        """How every room that is served stands, in short."""
        return tuple(room.status() for room in self._rooms.values())

    def company(self) -> list[tuple[TopicId, tuple[PeerId, ...], tuple[PeerId, ...]]]:
        """Of each room, who is here, members and relays; of those who were here before nothing is kept."""
        return [(room.room, room.here, ()) for room in self._rooms.values()]

    def examine(self) -> RelayReport:
        """All that this relay knows."""
        return RelayReport(self.epoch, tuple(room.report() for room in self._rooms.values()))

    # Greetings.

    def handle_greet(self, peer: PeerId, greet: Greet, now: float) -> None:
        """Hear who a peer is, and greet it in turn if it is of the room."""
        try:
            caller = self._visitors.identify(peer, greet.card, now)
        except RemoteError as error:
            self._reject(greet.room, peer, error.reason, "greet")
            self._out.send(peer, Refused(greet.room, None, error.reason, error.detail[:200]))
            return
        admitted = self._admissions.get(greet.room)
        if admitted is not None:
            admitted.ask_contact(peer)
            return
        room = self._rooms.get(greet.room)
        if room is None:
            # Whoever is about to ask us to serve it says first who it is; that is all we keep of it.
            self._reject(greet.room, peer, Reason.UNKNOWN_ROOM, "greet")
        elif room.handle_greet(caller, greet, now):
            self._out.send(peer, self._info(now))

    def handle_info(self, peer: PeerId, info: RelayInfo, now: float) -> None:
        """Tell a peer that asks how much this relay keeps."""
        if info.request:
            self._out.send(peer, self._info(now))

    # Requests.

    def handle_request(self, peer: PeerId, message: Request, now: float) -> None:
        """Answer a request about a room after the commit, or keep it until it can be answered."""
        cards: tuple[Card, ...] = ()
        if isinstance(message, RelaySend | RelayForward):
            cards = message.cards
        elif isinstance(message, AskControl) and message.card is not None:
            cards = (message.card,)
        room = self._rooms.get(message.topic if isinstance(message, Want) else message.room)
        caller = self._visitors.find_caller(peer, cards, now)
        caller = relay_at(room.view, peer) if room is not None and caller is None else caller
        if isinstance(message, Resync) and room and caller and room.resyncs.defer_if_waiting(caller, message):
            return
        answers = self._answer_request(caller, message, now)
        if answers:
            self._out.add(AfterCommit(tuple(Send(peer, answer) for answer in answers)))

    def _answer_request(self, caller: Caller | None, message: Request, now: float) -> list[Answer]:
        """Do what a request asks for; returns the answers. The same for links and for HTTP."""
        room_id = message.topic if isinstance(message, Want) else message.room
        room = self._rooms.get(room_id)
        if room is None:
            return self._refuse(message, Reason.UNKNOWN_ROOM, caller)
        if isinstance(message, AskControl | Want | ChunkWant):
            reason = room.why_not(caller, message, now)
            if reason is not None:
                told: ControlPage | None = None
                if caller and isinstance(message, AskControl) and reason in _OUTSIDE:
                    told = room.removal_page(caller, message)
                return self._refuse(message, reason, caller) if told is None else [told]
        if isinstance(message, AskControl):
            return [room.give_control(caller, message, now)]
        if caller is None:
            return self._refuse(message, Reason.UNKNOWN_DEVICE, caller)
        match message:
            case RelaySend() | RelayForward():
                return self._keep_events(room, caller, message, now)
            case Resync():
                return [room.resyncs.answer(caller, message, now)]
            case Want():
                return [room.give_events(caller, message, now)]
            case ChunkPut():
                return [room.put_chunk(caller, message, now)]
            case ChunkWant():
                return [*room.get_chunks(message, now)]
            case _:
                assert_never(message)

    def _keep_events(
        self, room: RelayRoom, caller: Caller, message: RelaySend | RelayForward, now: float
    ) -> list[Answer]:
        if isinstance(message, RelayForward):
            reason = room.why_not_relay(caller)
            if reason is not None:
                return self._refuse(message, reason, caller)
        replies = room.keep_events(caller, message, now)
        self._leave_if_dropped(room.room, now)
        return [*replies]

    def handle_receipt(self, peer: PeerId, receipt: RoomReceipt, now: float) -> None:
        """Keep a receipt of a member, for those who are away."""
        room = self._rooms.get(receipt.room)
        caller = self._visitors.find_caller(peer, (receipt.card,), now)
        if room is not None and caller is not None:
            room.handle_receipt(caller, receipt, now)
        else:
            reason = Reason.UNKNOWN_ROOM if room is None else Reason.UNKNOWN_DEVICE
            self._reject(receipt.room, peer, reason, "receipt")

    def reject_message(self, peer: PeerId, room: TopicId, message: RoomMessage) -> None:
        """Record a message of a sort that nobody says to a relay."""
        self._reject(room, peer, Reason.UNSUPPORTED, type(message).__name__)

    # Answers to our own questions.

    def handle_taken(self, peer: PeerId, taken: RelayTaken, now: float) -> None:
        """Hear what another relay answers to what we forwarded."""
        room = self._rooms.get(taken.room)
        if room is not None:
            room.handle_taken(peer, taken)

    def handle_control_page(self, peer: PeerId, page: ControlPage, now: float) -> None:
        """Take in control events that we asked for."""
        if page.room in self._admissions:
            self._continue_admission(peer, page, now)
            return
        room = self._rooms.get(page.room)
        if room is not None:
            room.handle_page(self._answering(peer, now), page, now)
            self._leave_if_dropped(page.room, now)

    def handle_given(self, peer: PeerId, given: Given, now: float) -> None:
        """Take in single events that we asked for."""
        room = self._rooms.get(given.topic)
        if room is not None:
            room.handle_given(self._answering(peer, now), given, now)
            self._leave_if_dropped(given.topic, now)

    def handle_refused(self, peer: PeerId, refused: Refused, now: float) -> None:
        """Hear why a peer shows us nothing of a room that we are about to serve."""
        admitted = self._admissions.get(refused.room)
        if admitted is not None:
            admitted.handle_refusal(peer, refused.reason)

    def _answering(self, peer: PeerId, now: float) -> Caller:
        return self._visitors.find_caller(peer, (), now) or Caller(peer, self._context.author)

    # Time.

    @on_timer(AdmissionDue)
    def ask_admission_again(self, timer: AdmissionDue, now: float) -> None:
        """Ask again for the control DAG of a room, or give it up."""
        admitted = self._admissions.get(timer.room)
        if admitted is not None and admitted.ask_again(now) is not None:
            del self._admissions[timer.room]
            self._context.store.cells.delete(_ROOMS, timer.room)

    @on_timer(LingerDue)
    def release_admission_links(self, timer: LingerDue, now: float) -> None:
        """Hold no longer the links by which we came to a room."""
        admitted = self._lingering.pop(timer.room, None)
        if admitted is not None:
            admitted.release_links()

    @on_timer(FetchDue)
    def fetch_again(self, timer: FetchDue, now: float) -> None:
        """Ask the next peer for control events that a room lacks."""
        room = self._rooms.get(timer.room)
        if room is not None:
            room.fetch_again(now)
            self._leave_if_dropped(timer.room, now)

    @on_timer(ForwardDue)
    def forward_again(self, timer: ForwardDue, now: float) -> None:
        """Forward again to another relay of a room."""
        room = self._rooms.get(timer.room)
        if room is not None:
            room.forward_again(timer.peer)

    @on_timer(ExpiryDue)
    def expire_events(self, timer: ExpiryDue, now: float) -> None:
        """Let go of what a room has kept long enough."""
        room = self._rooms.get(timer.room)
        if room is not None:
            room.expire_events(now)

    @on_timer(SweepDue)
    def sweep_again(self, timer: SweepDue, now: float) -> None:
        """Let go of the next part of a room that is not served any more."""
        self._sweep_room(timer.room)

    # Rooms that begin and end.

    def handle_ask(self, peer: PeerId, ask: RelayAsk, now: float) -> None:
        """Say whether we take a room, and begin to if so."""
        caller = self._visitors.find_caller(peer, () if ask.card is None else (ask.card,), now)
        person = None if caller is None else caller.person
        rooms = len(self._rooms) + len(self._admissions)
        reason = why_not_taken(self._config, person, rooms, self._budget.bytes)
        if reason is None and len(self._admissions) >= AT_ONCE:
            reason = Reason.TOO_MANY
        if reason is None and self._context.store.log.kept(ask.room).units:
            reason = Reason.IN_USE  # we are a member of it, or were its relay and have not let go of all
        is_served = self.serves(ask.room)
        reason = None if is_served else reason
        card = self._context.card if reason is None else None
        if reason is not None:
            self._reject(ask.room, peer, reason, "admission")
        answer = RelayAnswer(ask.room, ask.request, reason, self._context.author, card)
        self._out.committed.send(peer, answer)
        if reason is None and not is_served:
            self._write(ask.room, b"asked", peer, ask.contacts)
            self._begin_admission(ask.room, peer, ask.contacts, now)

    def _begin_admission(
        self, room: TopicId, asker: PeerId, contacts: tuple[Contact, ...], now: float
    ) -> None:
        most = self._rooms_config.max_control
        admitted = Admission(room, asker, contacts, self._context, self._config, most, self._out)
        self._admissions[room] = admitted
        admitted.begin(now)

    def _continue_admission(self, peer: PeerId, page: ControlPage, now: float) -> None:
        """Take in control events of a room that we are about to serve, and join once its state names us."""
        admitted = self._admissions[page.room]
        admitted.handle_page(peer, page)
        if admitted.why_not is not None:
            return
        del self._admissions[page.room]
        cache = self._cache(page.room, Budget(0))
        for verified in admitted.units:
            cache.keep_control(verified, False, now)
        self._write(page.room, _SERVING)
        room = self._rooms[page.room] = self._open(page.room)
        room.join(tuple(admitted.contacts), now)
        self._lingering[page.room] = admitted
        self._leave_if_dropped(page.room, now)
        admitted.linger()

    def _leave_if_dropped(self, room_id: TopicId, now: float) -> None:
        """Leave a room whose state names us no longer, and begin to let go of it."""
        room = self._rooms[room_id]
        if not room.is_dropped:
            return
        del self._rooms[room_id]
        self._write(room_id, _LEAVING)
        room.leave(now)
        self._leaving[room_id] = room.remains
        self._sweep_room(room_id)

    def _sweep_room(self, room_id: TopicId) -> None:
        """Let go of a bounded part of a room that is not served any more."""
        remains = self._leaving.get(room_id)
        if remains is None:
            return
        if remains.forget_some():
            self._out.set_timer(0.0, SweepDue(room_id))
            return
        del self._leaving[room_id]
        self._context.store.cells.delete(_ROOMS, room_id)

    def _reject(self, room: TopicId, peer: PeerId, reason: Reason, note: str) -> None:
        self._out.record(Record(Kind.REJECTED, room, peer=peer, reason=reason, note=note))

    def _refuse(self, message: Request, reason: Reason, caller: Caller | None) -> list[Answer]:
        return refuse_request(message, reason, caller, self._out)

    def _info(self, now: float) -> RelayInfo:
        kept, rooms = self._budget, len(self._rooms)
        clock = int(now * 1000)
        return RelayInfo(rooms, kept.events, kept.bytes, self._config.total_bytes, clock, False)

    def _open(self, room: TopicId) -> RelayRoom:
        config, rooms = self._config, self._rooms_config
        return RelayRoom(room, self.epoch, self._context, config, rooms, self._budget, self._out)

    def _cache(self, room: TopicId, budget: Budget) -> EventCache:
        context = self._context
        return EventCache(room, context.store, context.cards, budget, self._config.tombstones, self._out)

    def _remains(self, room: TopicId) -> RoomSweep:
        """What a sweep has left that a restart interrupted."""
        config, context = self._config, self._context
        receipts = StoredReceipts(room, context, self._rooms_config, config.receipts)
        chunks = StoredChunks(room, context.store.cells, config.chunk_bytes, self._out)
        return RoomSweep(self._cache(room, self._budget), receipts, chunks)

    def _write(
        self, room: TopicId, state: bytes, asker: PeerId = _NOBODY, contacts: tuple[Contact, ...] = ()
    ) -> None:
        self._context.store.cells.put(_ROOMS, room, _encode((state, asker, contacts)))

    def _kept_epoch(self, entropy: Callable[[int], bytes]) -> bytes:
        cells = self._context.store.cells
        kept = cells.get(_EPOCH, b"")
        if kept is None:
            kept = entropy(8)
            cells.put(_EPOCH, b"", kept)
        return kept
