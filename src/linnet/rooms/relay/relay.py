"""The relay role of a node: all rooms that it serves, or was asked to serve."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, assert_never

import msgspec

from linnet.core.effects import AfterCommit, Send
from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.inputs import LinkDown, LinkUp
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.delivery.messages import Given, Want
from linnet.identity.cards import Card
from linnet.machine.outbox import Outbox
from linnet.machine.part import Part, on_input, on_message, on_timer
from linnet.rooms.commands import AskRelay, RelayReplies, RelayReport, RoomStatus
from linnet.rooms.config import RelayConfig, RelayPolicy, RoomsConfig
from linnet.rooms.guests import reject_on_local_network, reject_unknown_room
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
    RoomReceipt,
    RoomTimer,
    RoomTopicMessage,
)
from linnet.rooms.relay.access_control import Answer, Caller, Request, Visitors, refuse_request, relay_at
from linnet.rooms.relay.admission import (
    AT_ONCE,
    Admission,
    AdmissionDue,
    LingerDue,
    RelaySetting,
    RoomStores,
    why_not_taken,
)
from linnet.rooms.relay.control_fetch import FetchDue
from linnet.rooms.relay.event_cache import ExpiryDue
from linnet.rooms.relay.event_index import Budget
from linnet.rooms.relay.forwarding import ForwardDue
from linnet.rooms.relay.relay_room import RelayRoom
from linnet.rooms.stamps import StampPrice, is_paid, window_at
from linnet.trace.records import Kind, Record

_ROOMS, _EPOCH = "relay.room", "relay.epoch"
_SERVING, _LEAVING = b"serving", b"leaving"
_OUTSIDE = (Reason.BANNED, Reason.NOT_INVITED)
"""The reasons why a former member may not see a room any more."""
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[bytes, PeerId, tuple[Contact, ...]]).decode
_NOBODY = PeerId(b"")


class SweepDue(RoomTimer, frozen=True, gc=False):
    """Timer: delete the next part of a room that is not served any more."""


M = TypeVar("M", bound=Request)


def request(kind: type[M]) -> Callable[[Relay, PeerId, M, float], None]:
    """Make a handler of requests of this type."""

    @on_message(kind)
    def handle(relay: Relay, peer: PeerId, message: M, now: float) -> None:
        relay.handle_request(peer, message, now)

    return handle


class Relay(Part):
    """All rooms that this node serves.

    It gets the messages about rooms that it serves, and about rooms that are unknown to this node; those
    about rooms that this node is in go to `linnet.rooms.part.Rooms`.
    """

    def __init__(
        self,
        context: Context,
        config: RelayConfig,
        rooms: RoomsConfig,
        out: Outbox,
        is_kept_from: Callable[[PeerId, TopicId], bool] = lambda peer, room: False,
    ) -> None:
        """`is_kept_from` says whether a peer is on a local network where a room is not allowed."""
        self._context = context
        self._config = config
        self._out = out
        self._is_kept_from = is_kept_from
        epoch, budget = self._kept_epoch(context.entropy), Budget(config.total_bytes)
        self._setting = RelaySetting(epoch, context, config, rooms, budget, out)
        self._rooms: dict[TopicId, RelayRoom] = {}
        self._leaving: dict[TopicId, RoomStores] = {}
        self._admissions: dict[TopicId, Admission] = {}
        self._lingering: dict[TopicId, Admission] = {}
        self._visitors = Visitors(context)

    @property
    def epoch(self) -> bytes:
        """The epoch of our cursors; those of another epoch belong to a store that was lost."""
        return self._setting.epoch

    def start(self, now: float) -> None:
        """Go on with every room from its state in the store."""
        for key, value in list(self._context.store.cells.scan(_ROOMS)):
            room, (state, asker, contacts) = TopicId(key), _decode(value)
            if state == _SERVING:
                self._rooms[room] = RelayRoom(room, self._setting)
                self._rooms[room].start(now)
                self._leave_if_dropped(room, now)
            elif state == _LEAVING:
                self._leaving[room] = RoomStores(room, self._setting)
                self._sweep_room(room)
            else:
                self._begin_admission(room, asker, contacts, now)

    def serves(self, room: TopicId) -> bool:
        """Return whether we serve this room, or are about to."""
        return room in self._rooms or room in self._admissions

    @on_input(LinkUp)
    def handle_link_up(self, event: LinkUp, now: float) -> None:
        """Resume work with a peer, now that its link is open."""
        for room in self._rooms.values():
            room.handle_link_up(event.peer)
        for admitted in self._admissions.values():
            admitted.ask_contact(event.peer)

    @on_input(LinkDown)
    def handle_link_down(self, event: LinkDown, now: float) -> None:
        """Forget what we owe to a peer whose link is gone."""
        self._visitors.handle_link_down(event.peer)
        for room in self._rooms.values():
            room.handle_link_down(event.peer)

    def ask(self, asked: AskRelay, now: float) -> RelayReplies:
        """Answer a request that came over HTTP instead of a link.

        The replies promise durability: give them after the commit.
        """
        message = asked.message
        if isinstance(message, RelayInfo):
            return RelayReplies((self._info(now),))
        answers = self._answer_request(Caller(asked.peer, asked.person, linked=False), message, now)
        return RelayReplies(tuple(each for each in answers if not isinstance(each, ChunkTaken | ChunkIs)))

    def status(self) -> tuple[RoomStatus, ...]:
        """Return a short status of every room that is served."""
        return tuple(room.status() for room in self._rooms.values())

    def company(self) -> list[tuple[TopicId, tuple[PeerId, ...], tuple[PeerId, ...]]]:
        """Return the online members' devices and relays of each room; earlier ones are not remembered."""
        return [(room.room, room.here, ()) for room in self._rooms.values()]

    def examine(self) -> RelayReport:
        """Return all that this relay knows."""
        return RelayReport(self.epoch, tuple(room.report() for room in self._rooms.values()))

    # Messages.

    def _is_served(self, peer: PeerId, message: RoomTopicMessage) -> bool:
        """Return whether a message is about a room that we serve, or are about to; reject it otherwise."""
        if self._is_kept_out(peer, message.topic):
            return False
        if self.serves(message.topic):
            return True
        reject_unknown_room(self._out, self._context.author, peer, message)
        return False

    def _is_kept_out(self, peer: PeerId, room: TopicId) -> bool:
        """Return whether a room is not allowed on a peer's local network; reject its message if so."""
        is_kept = self._is_kept_from(peer, room)
        if is_kept:
            reject_on_local_network(self._out, peer, room)
        return is_kept

    @on_message(Greet)
    def handle_greet(self, peer: PeerId, greet: Greet, now: float) -> None:
        """Take in the greeting of a peer, and greet it in turn if it is of the room."""
        if self._is_kept_out(peer, greet.room):
            return
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
            # A peer that will ask us to serve the room greets first; of this we keep only its card.
            self._reject(greet.room, peer, Reason.UNKNOWN_ROOM, "greet")
        elif room.handle_greet(caller, greet, now):
            self._out.send(peer, self._info(now))

    def handle_info(self, peer: PeerId, info: RelayInfo, now: float) -> None:
        """Send this relay's load to a peer that asks for it."""
        if info.request:
            self._out.send(peer, self._info(now))

    # Requests.

    handle_send = request(RelaySend)
    handle_forward = request(RelayForward)
    handle_resync = request(Resync)
    handle_want = request(Want)
    handle_ask_control = request(AskControl)
    handle_chunk_put = request(ChunkPut)
    handle_chunk_want = request(ChunkWant)

    def handle_request(self, peer: PeerId, message: Request, now: float) -> None:
        """Answer a request about a room after the commit, or keep it until it can be answered."""
        if self._is_kept_out(peer, message.topic):
            return
        cards: tuple[Card, ...] = ()
        if isinstance(message, RelaySend | RelayForward):
            cards = message.cards
        elif isinstance(message, AskControl) and message.card is not None:
            cards = (message.card,)
        room = self._rooms.get(message.topic)
        caller = self._visitors.find_caller(peer, cards, now)
        caller = relay_at(room.view, peer) if room is not None and caller is None else caller
        if isinstance(message, Resync) and room and caller and room.resyncs.defer_if_waiting(caller, message):
            return
        answers = self._answer_request(caller, message, now)
        if answers:
            self._out.add(AfterCommit(tuple(Send(peer, answer) for answer in answers)))

    def _answer_request(self, caller: Caller | None, message: Request, now: float) -> list[Answer]:
        """Carry out a request and return the answers. The same for links and for HTTP."""
        room_id = message.topic
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

    @on_message(RoomReceipt)
    def handle_receipt(self, peer: PeerId, receipt: RoomReceipt, now: float) -> None:
        """Store a receipt of a member, for offline members."""
        if not self._is_served(peer, receipt):
            return
        room = self._rooms.get(receipt.room)
        caller = self._visitors.find_caller(peer, (receipt.card,), now)
        if room is not None and caller is not None:
            room.handle_receipt(caller, receipt, now)
        else:
            reason = Reason.UNKNOWN_ROOM if room is None else Reason.UNKNOWN_DEVICE
            self._reject(receipt.room, peer, reason, "receipt")

    # Answers to our own requests.

    @on_message(RelayTaken)
    def handle_taken(self, peer: PeerId, taken: RelayTaken, now: float) -> None:
        """Take in another relay's answer to the events that we forwarded."""
        if not self._is_served(peer, taken):
            return
        room = self._rooms.get(taken.room)
        if room is not None:
            room.handle_taken(peer, taken)

    @on_message(ControlPage)
    def handle_control_page(self, peer: PeerId, page: ControlPage, now: float) -> None:
        """Take in control events that we asked for."""
        if not self._is_served(peer, page):
            return
        if page.room in self._admissions:
            self._continue_admission(peer, page, now)
            return
        room = self._rooms.get(page.room)
        if room is not None:
            room.handle_page(self._answering(peer, now), page, now)
            self._leave_if_dropped(page.room, now)

    @on_message(Given)
    def handle_given(self, peer: PeerId, given: Given, now: float) -> None:
        """Take in single events that we asked for."""
        if not self._is_served(peer, given):
            return
        room = self._rooms.get(given.topic)
        if room is not None:
            room.handle_given(self._answering(peer, now), given, now)
            self._leave_if_dropped(given.topic, now)

    @on_message(Refused)
    def handle_refused(self, peer: PeerId, refused: Refused, now: float) -> None:
        """Note why a peer refuses to show us a room that we are about to serve."""
        if not self._is_served(peer, refused):
            return
        admitted = self._admissions.get(refused.room)
        if admitted is not None:
            admitted.handle_refusal(peer, refused.reason)

    def _answering(self, peer: PeerId, now: float) -> Caller:
        return self._visitors.find_caller(peer, (), now) or Caller(peer, self._context.author)

    # Time.

    @on_timer(AdmissionDue)
    def ask_admission_again(self, timer: AdmissionDue, now: float) -> None:
        """Ask again for the control DAG of a room, or give up its admission."""
        admitted = self._admissions.get(timer.room)
        if admitted is not None and admitted.ask_again(now) is not None:
            del self._admissions[timer.room]
            self._context.store.cells.delete(_ROOMS, timer.room)

    @on_timer(LingerDue)
    def release_admission_links(self, timer: LingerDue, now: float) -> None:
        """Release the links of a finished admission."""
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
        """Expire the events of a room that have been kept long enough."""
        room = self._rooms.get(timer.room)
        if room is not None:
            room.expire_events(now)

    @on_timer(SweepDue)
    def sweep_again(self, timer: SweepDue, now: float) -> None:
        """Delete the next part of a room that is not served any more."""
        self._sweep_room(timer.room)

    # Rooms that begin and end.

    @on_message(RelayAsk)
    def handle_ask(self, peer: PeerId, ask: RelayAsk, now: float) -> None:
        """Answer whether we accept a room, and begin its admission if so."""
        if self._is_kept_out(peer, ask.room):
            return
        caller = self._visitors.find_caller(peer, () if ask.card is None else (ask.card,), now)
        person = None if caller is None else caller.person
        rooms = len(self._rooms) + len(self._admissions)
        reason = why_not_taken(self._config, person, rooms, self._setting.budget.bytes)
        price = None
        if reason is None and not self.serves(ask.room) and person not in self._config.allow:
            price = self._price_of(ask, peer, now)
            reason = None if price is None else Reason.NOT_ALLOWED
        if reason is None and len(self._admissions) >= AT_ONCE:
            reason = Reason.TOO_MANY
        if reason is None and self._context.store.log.kept(ask.room).units:
            reason = Reason.IN_USE  # We are a member of it, or were its relay and have not deleted all.
        is_served = self.serves(ask.room)
        reason = None if is_served else reason
        card = self._context.card if reason is None else None
        if reason is not None:
            self._reject(ask.room, peer, reason, "admission" if price is None else "admission: no stamp")
        answer = RelayAnswer(ask.room, ask.request, reason, self._context.author, card, price)
        self._out.committed.send(peer, answer)
        if reason is None and not is_served:
            self._write(ask.room, b"asked", peer, ask.contacts)
            self._begin_admission(ask.room, peer, ask.contacts, now)

    def _price_of(self, ask: RelayAsk, peer: PeerId, now: float) -> StampPrice | None:
        """Return what a stranger still has to pay for a room; None: nothing."""
        config = self._config
        if config.policy is not RelayPolicy.OPEN:
            return None
        paid = is_paid(ask.stamp, config.stamp_bits, self._context.peer, ask.room, peer, now)
        return None if paid else StampPrice(config.stamp_bits, window_at(now))

    def _begin_admission(
        self, room: TopicId, asker: PeerId, contacts: tuple[Contact, ...], now: float
    ) -> None:
        admitted = Admission(room, asker, contacts, self._setting)
        self._admissions[room] = admitted
        admitted.begin(now)

    def _continue_admission(self, peer: PeerId, page: ControlPage, now: float) -> None:
        """Take in control events of a room that we are about to serve, and join once its state names us."""
        admitted = self._admissions[page.room]
        admitted.handle_page(peer, page)
        if admitted.why_not is not None:
            return
        del self._admissions[page.room]
        cache = RoomStores(page.room, self._setting._replace(budget=Budget(0))).cache
        for verified in admitted.units:
            cache.keep_control(verified, False, now)
        self._write(page.room, _SERVING)
        room = self._rooms[page.room] = RelayRoom(page.room, self._setting)
        room.join(tuple(admitted.contacts), now)
        self._lingering[page.room] = admitted
        self._leave_if_dropped(page.room, now)
        admitted.linger()

    def _leave_if_dropped(self, room_id: TopicId, now: float) -> None:
        """Leave a room whose state no longer names us, and begin to delete it."""
        room = self._rooms[room_id]
        if not room.is_dropped:
            return
        del self._rooms[room_id]
        self._write(room_id, _LEAVING)
        room.leave(now)
        self._leaving[room_id] = room
        self._sweep_room(room_id)

    def _sweep_room(self, room_id: TopicId) -> None:
        """Delete a bounded part of a room that is not served any more."""
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
        kept, rooms = self._setting.budget, len(self._rooms)
        clock = int(now * 1000)
        return RelayInfo(rooms, kept.events, kept.bytes, self._config.total_bytes, clock, False)

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
