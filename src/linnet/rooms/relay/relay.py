"""The relay role of a node: every room that it serves, and those that it was asked to serve."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

import msgspec

from linnet.core.effects import AfterCommit, Send, SetTimer
from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.delivery.causal_messages import Beyond, Further, Given, Reconcile, Want
from linnet.delivery.context import Context
from linnet.identity.cards import Card
from linnet.rooms.commands import AskRelay
from linnet.rooms.config import RelayConfig, RoomsConfig
from linnet.rooms.effects import RoomEffect
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
from linnet.rooms.relay import admission, fetching, forwarding, retention
from linnet.rooms.relay.admission import AT_ONCE, Admission, why_not_taken
from linnet.rooms.relay.cache import Cache
from linnet.rooms.relay.chunks import Chunks
from linnet.rooms.relay.door import Caller, relay_at
from linnet.rooms.relay.receipts import KeptReceipts
from linnet.rooms.relay.refusals import Answer, Request, refused
from linnet.rooms.relay.relay_room import RelayRoom
from linnet.rooms.relay.sweeping import Sweeping
from linnet.rooms.relay.usage import Budget
from linnet.rooms.relay.visitors import Visitors
from linnet.rooms.results import RelayReplies, RelayReport, RoomStatus
from linnet.trace.records import Kind, Record

OWNER = "relay"
OWNERS = (OWNER, admission.OWNER, fetching.OWNER, forwarding.OWNER, retention.OWNER)
"""Owners of the timers that belong here."""

_ROOMS, _EPOCH = "relay.room", "relay.epoch"
_SERVING, _LEAVING = b"serving", b"leaving"
_OUTSIDE = (Reason.BANNED, Reason.NOT_INVITED)
"""Why somebody who was of a room does not see it any more."""
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[bytes, PeerId, tuple[Contact, ...]]).decode
_NOBODY = PeerId(b"")


class Relay:
    """All rooms that this node serves."""

    def __init__(self, context: Context, config: RelayConfig, rooms: RoomsConfig, entropy: Entropy) -> None:
        self._context = context
        self._config = config
        self._rooms_config = rooms
        self._budget = Budget(config.total_bytes)
        self.epoch = self._kept_epoch(entropy)
        """Cursors of another epoch are not ours: what we had then is lost."""
        self._rooms: dict[TopicId, RelayRoom] = {}
        self._leaving: dict[TopicId, Sweeping] = {}
        self._admissions: dict[TopicId, Admission] = {}
        self._lingering: dict[TopicId, Admission] = {}
        self._visitors = Visitors(context)

    def start(self, now: float) -> list[RoomEffect]:
        """Go on with every room where the store left it."""
        effects: list[RoomEffect] = []
        for key, value in list(self._context.store.cells.scan(_ROOMS)):
            room, (state, asker, contacts) = TopicId(key), _decode(value)
            if state == _SERVING:
                self._rooms[room] = self._open(room)
                effects += self._watched(room, self._rooms[room].start(now), now)
            elif state == _LEAVING:
                self._leaving[room] = self._remains(room)
                effects += self._sweep(room)
            else:
                effects += self._admit(room, asker, contacts, now)
        return effects

    def serves(self, room: TopicId) -> bool:
        """Whether what is said about this room is for us: we serve it, or are about to."""
        return room in self._rooms or room in self._admissions

    def on_message(self, peer: PeerId, message: RoomMessage, now: float) -> list[RoomEffect]:
        """Whatever a peer says about a room that we serve, or asks us to serve."""
        match message:
            case Greet():
                return self._greet(peer, message, now)
            case RelayInfo():
                return [Send(peer, self._info(now))] if message.request else []
            case RelayAsk():
                return self._ask(peer, message, now)
            case RoomReceipt():
                return self._receipt(peer, message, now)
            case RelayTaken() | ControlPage() | Given():
                return self._answered(peer, message, now)
            case RelaySend() | RelayForward() | Resync() | Want() | AskControl() | ChunkPut() | ChunkWant():
                return self._asked(peer, message, now)
            case Refused(room, _, reason):
                if room in self._admissions:
                    self._admissions[room].refused(peer, reason)
                return []
            case Beyond() | Further() | Reconcile():
                return [_unsupported(peer, message.topic, message)]
            case ResyncPage() | RelayAnswer() | ChunkIs() | ChunkTaken():
                return [_unsupported(peer, message.room, message)]
            case _:
                assert_never(message)

    def link_up(self, peer: PeerId, now: float) -> list[RoomEffect]:
        """A link is open."""
        effects: list[RoomEffect] = []
        for room in self._rooms.values():
            effects += room.up(peer)
        for admitted in self._admissions.values():
            effects += admitted.up(peer)
        return effects

    def link_down(self, peer: PeerId) -> list[RoomEffect]:
        """A link is gone."""
        self._visitors.down(peer)
        return [effect for room in self._rooms.values() for effect in room.down(peer)]

    def fired(self, tick: Tick, now: float) -> list[RoomEffect]:
        """A timer of ours."""
        room_id = TopicId(tick.key[:32])
        if tick.owner == OWNER:
            return self._sweep(room_id)
        if tick.owner == admission.OWNER and tick.what == admission.LET_GO:
            admitted = self._lingering.pop(room_id, None)
            return [] if admitted is None else [*admitted.let_go()]
        if tick.owner == admission.OWNER:
            return self._admission_fired(room_id, now)
        room = self._rooms.get(room_id)
        if room is None:
            return []
        if tick.owner == fetching.OWNER:
            return self._watched(room_id, room.fetch_again(now), now)
        if tick.owner == forwarding.OWNER:
            return room.forward_again(PeerId(tick.key[32:]))
        return room.expire(now)

    def ask(self, asked: AskRelay, now: float) -> tuple[RelayReplies, list[RoomEffect]]:
        """A request by another way than a link. The reply promises: give it after the commit."""
        message = asked.message
        if isinstance(message, RelayInfo):
            return RelayReplies((self._info(now),)), []
        answers, effects = self._reply(Caller(asked.peer, asked.person, linked=False), message, now)
        return RelayReplies(
            tuple(each for each in answers if not isinstance(each, ChunkTaken | ChunkIs))
        ), effects

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

    def _greet(self, peer: PeerId, greet: Greet, now: float) -> list[RoomEffect]:
        try:
            caller = self._visitors.identify(peer, greet.card, now)
        except RemoteError as error:
            record = Record(Kind.REJECTED, greet.room, peer=peer, reason=error.reason, note="greet")
            return [record, Send(peer, Refused(greet.room, None, error.reason, error.detail[:200]))]
        admitted = self._admissions.get(greet.room)
        if admitted is not None:
            return [*admitted.greeted(peer)]
        room = self._rooms.get(greet.room)
        if room is None:
            # Whoever is about to ask us to serve it says first who it is; that is all we keep of it.
            return [Record(Kind.REJECTED, greet.room, peer=peer, reason=Reason.UNKNOWN_ROOM, note="greet")]
        effects = room.greet(caller, greet, now)
        if any(isinstance(each, Send) and isinstance(each.message, Greet) for each in effects):
            effects.append(Send(peer, self._info(now)))
        return effects

    # Requests.

    def _asked(self, peer: PeerId, message: Request, now: float) -> list[RoomEffect]:
        cards: tuple[Card, ...] = ()
        if isinstance(message, RelaySend | RelayForward):
            cards = message.cards
        elif isinstance(message, AskControl) and message.card is not None:
            cards = (message.card,)
        room = self._rooms.get(message.topic if isinstance(message, Want) else message.room)
        caller = self._visitors.caller(peer, cards, now)
        caller = relay_at(room.view, peer) if room is not None and caller is None else caller
        if isinstance(message, Resync) and room and caller and room.resyncs.defers(caller, message):
            return []
        answers, effects = self._reply(caller, message, now)
        promises = tuple(Send(peer, answer) for answer in answers)
        return [*effects, AfterCommit(promises)] if promises else effects

    def _reply(
        self, caller: Caller | None, message: Request, now: float
    ) -> tuple[list[Answer], list[RoomEffect]]:
        """The answers to a request, and what else is to be done. The same for links and for HTTP."""
        room_id = message.topic if isinstance(message, Want) else message.room
        room = self._rooms.get(room_id)
        if room is None:
            return refused(message, Reason.UNKNOWN_ROOM, caller)
        if isinstance(message, AskControl | Want | ChunkWant):
            reason = room.why_not(caller, message, now)
            if reason is not None:
                told: ControlPage | None = None
                if caller and isinstance(message, AskControl) and reason in _OUTSIDE:
                    told = room.removal(caller, message)
                return refused(message, reason, caller) if told is None else ([told], [])
        if isinstance(message, AskControl):
            return [room.control(caller, message, now)], []
        if caller is None:
            return refused(message, Reason.UNKNOWN_DEVICE, caller)
        match message:
            case RelaySend() | RelayForward():
                return self._keep(room, caller, message, now)
            case Resync():
                page, records = room.resyncs.answer(caller, message, now)
                return [page], [*records]
            case Want():
                return [room.want(caller, message, now)], []
            case ChunkPut():
                taken, effects = room.put_chunk(caller, message, now)
                return [taken], effects
            case ChunkWant():
                return [*room.get_chunks(message, now)], []
            case _:
                assert_never(message)

    def _keep(
        self, room: RelayRoom, caller: Caller, message: RelaySend | RelayForward, now: float
    ) -> tuple[list[Answer], list[RoomEffect]]:
        if isinstance(message, RelayForward):
            reason = room.may_forward(caller)
            if reason is not None:
                return refused(message, reason, caller)
        turn = room.send(caller, message, now)
        effects = self._watched(room.room, room.finish(turn, now), now)
        return [*turn.replies], effects

    def _receipt(self, peer: PeerId, receipt: RoomReceipt, now: float) -> list[RoomEffect]:
        room = self._rooms.get(receipt.room)
        caller = self._visitors.caller(peer, (receipt.card,), now)
        if room is not None and caller is not None:
            return room.receipt(caller, receipt, now)
        reason = Reason.UNKNOWN_ROOM if room is None else Reason.UNKNOWN_DEVICE
        return [Record(Kind.REJECTED, receipt.room, peer=peer, reason=reason, note="receipt")]

    def _answered(
        self, peer: PeerId, message: RelayTaken | ControlPage | Given, now: float
    ) -> list[RoomEffect]:
        """Something that we asked for."""
        room_id = message.topic if isinstance(message, Given) else message.room
        if isinstance(message, ControlPage) and room_id in self._admissions:
            return self._admission_page(peer, message, now)
        room = self._rooms.get(room_id)
        if room is None:
            return []
        if isinstance(message, RelayTaken):
            return room.taken(peer, message)
        caller = self._visitors.caller(peer, (), now) or Caller(peer, self._context.author)
        effects = (
            room.page(caller, message, now)
            if isinstance(message, ControlPage)
            else room.given(caller, message, now)
        )
        return self._watched(room_id, effects, now)

    # Rooms that begin and end.

    def _ask(self, peer: PeerId, ask: RelayAsk, now: float) -> list[RoomEffect]:
        caller = self._visitors.caller(peer, () if ask.card is None else (ask.card,), now)
        person = None if caller is None else caller.person
        rooms = len(self._rooms) + len(self._admissions)
        reason = why_not_taken(self._config, person, rooms, self._budget.bytes)
        if reason is None and len(self._admissions) >= AT_ONCE:
            reason = Reason.TOO_MANY
        if reason is None and self._context.store.log.kept(ask.room).units:
            reason = Reason.IN_USE  # we are a member of it, or were its relay and have not let go of all
        served = self.serves(ask.room)
        reason = None if served else reason
        card = self._context.card if reason is None else None
        answer = RelayAnswer(ask.room, ask.request, reason, self._context.author, card)
        told: RoomEffect = AfterCommit((Send(peer, answer),))
        if served:
            return [told]
        if reason is not None:
            return [Record(Kind.REJECTED, ask.room, peer=peer, reason=reason, note="admission"), told]
        self._write(ask.room, b"asked", peer, ask.contacts)
        return [told, *self._admit(ask.room, peer, ask.contacts, now)]

    def _admit(
        self, room: TopicId, asker: PeerId, contacts: tuple[Contact, ...], now: float
    ) -> list[RoomEffect]:
        most = self._rooms_config.max_control
        admitted = Admission(room, asker, contacts, self._context, self._config, most)
        self._admissions[room] = admitted
        return [*admitted.begin(now)]

    def _admission_page(self, peer: PeerId, page: ControlPage, now: float) -> list[RoomEffect]:
        admitted = self._admissions[page.room]
        effects: list[RoomEffect] = [*admitted.page(peer, page)]
        if admitted.why_not is not None:
            return effects
        del self._admissions[page.room]
        cache = self._cache(page.room, Budget(0))
        for verified in admitted.units:
            cache.keep_control(verified, False, now)
        self._write(page.room, _SERVING)
        room = self._rooms[page.room] = self._open(page.room)
        effects += room.join(tuple(admitted.contacts), now)
        self._lingering[page.room] = admitted
        return [*self._watched(page.room, effects, now), *admitted.linger()]

    def _admission_fired(self, room: TopicId, now: float) -> list[RoomEffect]:
        admitted = self._admissions.get(room)
        if admitted is None:
            return []
        effects, reason = admitted.fired(now)
        if reason is not None:
            del self._admissions[room]
            self._context.store.cells.delete(_ROOMS, room)
        return [*effects]

    def _watched(self, room_id: TopicId, effects: list[RoomEffect], now: float) -> list[RoomEffect]:
        """What a room did; if its state names us no longer, this was the last of it."""
        room = self._rooms[room_id]
        if not room.is_dropped:
            return effects
        del self._rooms[room_id]
        self._write(room_id, _LEAVING)
        effects += room.leave(now)
        self._leaving[room_id] = room.remains
        return [*effects, *self._sweep(room_id)]

    def _sweep(self, room_id: TopicId) -> list[RoomEffect]:
        """Let go of a bounded part of a room that is not served any more."""
        remains = self._leaving.get(room_id)
        if remains is None:
            return []
        records = remains.forget()
        if records:
            return [*records, SetTimer(0.0, Tick(OWNER, "sweep", room_id))]
        del self._leaving[room_id]
        self._context.store.cells.delete(_ROOMS, room_id)
        return []

    def _info(self, now: float) -> RelayInfo:
        kept, rooms = self._budget, len(self._rooms)
        clock = int(now * 1000)
        return RelayInfo(rooms, kept.events, kept.bytes, self._config.total_bytes, clock, False)

    def _open(self, room: TopicId) -> RelayRoom:
        return RelayRoom(room, self.epoch, self._context, self._config, self._rooms_config, self._budget)

    def _cache(self, room: TopicId, budget: Budget) -> Cache:
        context = self._context
        return Cache(room, context.store, context.cards, budget, self._config.tombstones)

    def _remains(self, room: TopicId) -> Sweeping:
        """What a sweep has left that a restart interrupted."""
        config, context = self._config, self._context
        receipts = KeptReceipts(room, context, self._rooms_config, config.receipts)
        chunks = Chunks(room, context.store.cells, config.chunk_bytes)
        return Sweeping(self._cache(room, self._budget), receipts, chunks)

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


def _unsupported(peer: PeerId, room: TopicId, message: RoomMessage) -> Record:
    note = type(message).__name__
    return Record(Kind.REJECTED, room, peer=peer, reason=Reason.UNSUPPORTED, note=note)
