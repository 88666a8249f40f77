"""All rooms of a node: the application's commands, the peers' messages, the links, the timers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from linnet.core.effects import AfterCommit, Reply, Send
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.delivery import recovery
from linnet.delivery.causal_messages import Beyond, Further, Given, Reconcile, Want
from linnet.delivery.commands import Consumed, Declined, Done, Unsubscribe
from linnet.delivery.messages import Data
from linnet.machine.outbox import Outbox
from linnet.overlay.notices import OverlayNotice
from linnet.rooms import adding_relay, announcing, chunks, ledger, receipts, relay_notices, sync
from linnet.rooms import joining as joins
from linnet.rooms.commands import AskRelay, ExamineRelay, ExamineRooms, JoinRoom, NotePerson, RoomCommand
from linnet.rooms.desk import Desk
from linnet.rooms.effects import RoomEffect, RoomStep
from linnet.rooms.entering import Entering
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
from linnet.rooms.noted_people import keep_note
from linnet.rooms.parts import Setting
from linnet.rooms.registry import Registry
from linnet.rooms.relay.relay import Relay
from linnet.rooms.results import RoomsAre, RoomStatus
from linnet.rooms.room import Room
from linnet.rooms.secrecy import guarding
from linnet.rooms.status import status_of
from linnet.trace.records import Kind, Record

OWNERS = (
    announcing.OWNER,
    sync.OWNER,
    recovery.OWNER,
    ledger.OWNER,
    receipts.OWNER,
    relay_notices.OWNER,
    *chunks.OWNERS,
    guarding.OWNER,
    joins.OWNER,
    adding_relay.OWNER,
)
"""Owners of timers that come back here."""

CAUSAL = (Want, Given, Beyond, Further, Reconcile)
Carried = (
    RelaySend
    | RelayForward
    | Resync
    | RelayAsk
    | RelayTaken
    | ResyncPage
    | RelayAnswer
    | ChunkWant
    | ChunkIs
    | ChunkPut
    | ChunkTaken
)
OfRoom = (
    Carried
    | Greet
    | RefusedMessage
    | Want
    | Given
    | Beyond
    | Further
    | Reconcile
    | AskControl
    | ControlPage
    | RoomReceipt
)
"""Everything that is said about one room."""


class Rooms:
    """Every room that this node is in, and those that it serves as a relay."""

    def __init__(self, setting: Setting, relay: Relay | None, out: Outbox) -> None:
        self._context = setting.context
        self._registry = Registry(setting)
        self._desk = Desk(self._registry)
        self._entering = Entering(self._registry, self._desk)
        self._relay = relay
        self._out = out

    def holds(self, topic: TopicId) -> bool:
        """Whether a topic is a room of this node."""
        return topic in self._registry

    def start(self, now: float) -> list[RoomEffect]:
        """Open every room of before, and turn to whoever is in them."""
        effects = self._registry.reopen(now)
        for room in self._registry:
            room.is_open = True
            effects += room.settle(room.start(now), now)
        relay = self._relay
        return effects if relay is None else [*effects, *self._out.collect(lambda: relay.start(now))]

    def stop(self, now: float) -> list[RoomEffect]:
        """Answer whoever waits, and let go."""
        effects: list[RoomEffect] = []
        for joining in list(self._desk.joining.values()):
            effects += self._desk.ended(joining, Declined(Reason.SHUTDOWN, "the node stops"), now)
        for adding in list(self._desk.adding.values()):
            effects += self._desk.relay_silent(adding)
        for room in self._registry:
            room.is_open = False
            effects += room.stop(now)
        return effects

    # Commands.

    def ask(self, request: int, command: RoomCommand, now: float) -> list[RoomEffect]:
        """What the application wants; answered by one reply."""
        match command:
            case ExamineRooms():
                return [Reply(request, RoomsAre(self.status()))]
            case ExamineRelay():
                if self._relay is None:
                    return [Reply(request, Declined(Reason.NOT_A_RELAY, "this node is no relay"))]
                return [Reply(request, self._relay.examine())]
            case AskRelay():
                if (relay := self._relay) is None:
                    return [Reply(request, Declined(Reason.NOT_A_RELAY, "this node is no relay"))]
                return self._out.collect(lambda: self._out.committed.reply(request, relay.ask(command, now)))
            case NotePerson(person, note):
                keep_note(self._context.store.cells, person, note)
                return [AfterCommit((Reply(request, Done()),))]
            case JoinRoom(room) if self._relay is not None and self._relay.serves(room):
                return [Reply(request, Declined(Reason.IN_USE, "this node is a relay of that room"))]
            case _:
                return self._desk.ask(request, command, now)

    def reads(self, subscription: int) -> bool:
        """Whether a subscription is one of a room."""
        return subscription in self._registry.by_subscription

    def unsubscribe(self, request: int, command: Unsubscribe) -> list[RoomEffect]:
        """Hand over no more."""
        room = self._registry.by_subscription.pop(command.subscription)
        effects = room.parts.readers.remove(command.subscription)
        return [*effects, AfterCommit((Reply(request, Done()),))]

    def consumed(self, request: int, command: Consumed) -> list[RoomEffect]:
        """Items were handled."""
        room = self._registry.by_subscription[command.subscription]
        effects = room.parts.readers.handled(command.subscription, command.items)
        return [*effects, AfterCommit((Reply(request, Done()),))]

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

    def located(self, room: TopicId, contact: Contact, now: float) -> list[RoomEffect]:
        """A device of a room may be dialled there, as it says itself."""
        known = self._registry.get(room)
        if known is None or not known.is_active:
            return []
        if known.view.is_relay(contact.peer):
            return known.settle(known.relays.told(contact, now), now)
        return [*known.neighbors.know((contact,), now)]

    # Messages.

    def on_data(self, peer: PeerId, data: Data, now: float) -> list[RoomEffect]:
        """An event of a room, on its way among those who are online."""
        room = self._registry.get(data.unit.topic)
        if room is None:
            return []
        if self._registry.setting.is_kept_from(peer, room.id):
            return [_kept(peer, room.id)]
        return room.settle(room.on_data(peer, data, now), now)

    def on_message(self, peer: PeerId, message: RoomMessage, now: float) -> list[RoomEffect]:
        """What a peer says about a room."""
        if isinstance(message, RelayInfo):
            return self._on_info(peer, message, now)
        topic = message.topic if isinstance(message, CAUSAL) else message.room
        if self._registry.setting.is_kept_from(peer, topic):
            return [_kept(peer, topic)]
        asks = topic not in self._registry and isinstance(message, RelayAsk | Greet)
        relay = self._relay
        if relay is not None and (asks or relay.serves(topic)):
            return self._out.collect(lambda: relay.handle_message(peer, message, now))
        joining = self._desk.joining.get(topic)
        if joining is not None:
            effects = self._entering.heard(joining, peer, message, now)
            if effects is not None:
                return effects
        if isinstance(message, RelayAnswer):
            adding = self._desk.adding.get(topic + peer)
            return [] if adding is None else self._desk.relay_answered(adding, message, now)
        room = self._registry.get(topic)
        if room is None:
            return self._unknown(peer, topic, message)
        return room.settle(self._on_message(room, peer, message, now), now)

    def _on_message(self, room: Room, peer: PeerId, message: OfRoom, now: float) -> list[RoomStep]:
        match message:
            case Greet():
                return [*room.on_greet(peer, message, now)]
            case RefusedMessage():
                return [*room.on_refused(peer, message, now)]
            case Want():
                return [*room.answering.on_want(peer, message)]
            case Given():
                return [*room.catching_up.on_given(peer, message, now)]
            case Beyond():
                return [*room.answering.on_beyond(peer, message)]
            case Further():
                return [*room.catching_up.on_further(peer, message, now)]
            case Reconcile():
                return [*room.catching_up.on_reconcile(peer, message, now)]
            case AskControl():
                return [*room.answering.on_ask_control(peer, message, now)]
            case ControlPage():
                return [*room.catching_up.on_control_page(peer, message, now)]
            case RoomReceipt():
                return [*room.on_receipt(peer, message, now)]
            case _:
                return self._on_carried(room, peer, message, now)

    def _on_carried(self, room: Room, peer: PeerId, message: Carried, now: float) -> list[RoomStep]:
        """What relays and attachments bring."""
        match message:
            case RelayTaken():
                return [*room.relays.answered(peer, message, now)]
            case ResyncPage():
                return [*room.relays.page(peer, message, now)]
            case ChunkWant():
                return [*room.chunks.want(peer, message, peer in room.guests.by_peer)]
            case ChunkIs():
                return [*room.chunks.arrived(peer, message, now)]
            case ChunkTaken():
                return [*room.chunks.taken(peer, message, now)]
            case RelaySend() | RelayForward() | Resync() | RelayAsk() | RelayAnswer() | ChunkPut():
                note = f"{type(message).__name__}: this node is no relay of it"
                return [Record(Kind.REJECTED, room.id, peer=peer, reason=Reason.NOT_A_RELAY, note=note)]
            case _:
                assert_never(message)

    def _on_info(self, peer: PeerId, info: RelayInfo, now: float) -> list[RoomEffect]:
        if info.request:
            relay = self._relay
            return [] if relay is None else self._out.collect(lambda: relay.handle_info(peer, info, now))
        for room in self._registry:
            room.relays.info(peer, info)
        return []

    def _unknown(self, peer: PeerId, topic: TopicId, message: RoomMessage) -> list[RoomEffect]:
        """About a room that we are not in, or no longer: said once to whoever asks or greets."""
        note = type(message).__name__
        record = Record(Kind.REJECTED, topic, peer=peer, reason=Reason.UNKNOWN_ROOM, note=note)
        match message:
            case AskControl(_, request):
                answer = ControlPage(topic, request, (), (), False, (), (), Reason.UNKNOWN_ROOM)
                return [record, Send(peer, answer)]
            case Resync(_, request):
                reason = Reason.UNKNOWN_ROOM
                page = ResyncPage(topic, request, (), (), (), (), None, False, None, (), reason)
                return [record, Send(peer, page)]
            case RelaySend(_, request) | RelayForward(_, request):
                return [record, Send(peer, RelayTaken(topic, request, (), Reason.UNKNOWN_ROOM))]
            case RelayAsk(_, request):
                reason = Reason.NOT_A_RELAY
                return [record, Send(peer, RelayAnswer(topic, request, reason, self._context.author))]
            case Greet():
                refused = RefusedMessage(topic, None, Reason.UNKNOWN_ROOM, "this node is not in that room")
                return [record, Send(peer, refused)]
            case _:
                return [record]

    # Links and timers.

    def link_up(self, event: LinkUp, now: float) -> list[RoomEffect]:
        """A link is open."""
        effects: list[RoomEffect] = []
        for room in self._registry:
            effects += room.settle(room.link_up(event.peer, now), now)
        for joining in self._desk.joining.values():
            effects += joining.up(event.peer)
        for adding in self._desk.adding.values():
            if adding.contact.peer == event.peer:
                effects += adding.up()
        relay = self._relay
        if relay is None:
            return effects
        return [*effects, *self._out.collect(lambda: relay.handle_link_up(event.peer))]

    def link_down(self, event: LinkDown, now: float) -> list[RoomEffect]:
        """A link is gone."""
        effects: list[RoomEffect] = []
        for room in self._registry:
            effects += room.settle(room.link_down(event.peer, now), now)
        for joining in self._desk.joining.values():
            joining.down(event.peer)
        relay = self._relay
        if relay is None:
            return effects
        return [*effects, *self._out.collect(lambda: relay.handle_link_down(event.peer))]

    def dial_failed(self, event: DialFailed, now: float) -> list[RoomEffect]:
        """A link could not be opened."""
        effects: list[RoomEffect] = []
        for room in self._registry:
            effects += room.settle(room.dial_failed(event.peer, event.reason, now), now)
        return effects

    def rtt(self, peer: PeerId, seconds: float) -> None:
        """The round-trip time of a link was measured."""
        for room in self._registry:
            room.relays.rtt(peer, seconds)

    def settle(self, nearby: Iterable[TopicId], now: float) -> list[RoomEffect]:
        """On the edge: which rooms are spoken of on local networks, beside their relays."""
        known, wanted = self._registry.setting.nearby, dict.fromkeys(nearby)
        if known == wanted:
            return []
        known.clear()
        known.update(wanted)
        effects: list[RoomEffect] = []
        for room in self._registry:
            effects += room.settle(room.nearby(now), now)
        return effects

    def noticed(self, notice: OverlayNotice, now: float) -> list[RoomEffect]:
        """A tracker's graph says who is a neighbour in a room."""
        room = self._registry.get(notice.topic)
        return [] if room is None else room.settle(room.noticed(notice, now), now)

    def fired(self, tick: Tick, now: float) -> list[RoomEffect]:
        """A timer has run out."""
        topic = TopicId(tick.key[:32])
        if tick.owner == joins.OWNER:
            attempt = self._desk.joining.get(topic)
            if attempt is not None and tick.what == "again":
                return self._desk.ask_again(attempt, now)
            return [] if attempt is None else self._desk.impatient(attempt, now)
        if tick.owner == adding_relay.OWNER:
            adding = self._desk.adding.get(tick.key)
            if adding is not None and tick.what == "again":
                return [*adding.again(self._context.links)]
            return [] if adding is None else self._desk.relay_silent(adding)
        known = self._registry.get(topic)
        return [] if known is None else known.settle(known.fired(tick, now), now)


def _kept(peer: PeerId, room: TopicId) -> Record:
    note = "a room that is not allowed on this local network"
    return Record(Kind.REJECTED, room, peer=peer, reason=Reason.NOT_ALLOWED, note=note)
