"""What the application asks of rooms: each command answered once."""

from __future__ import annotations

from functools import partial

from linnet.core.effects import AfterCommit, Reply
from linnet.core.errors import Refused, RemoteError
from linnet.core.ids import Contact, EventId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.commands import Declined, Done
from linnet.rooms.adding_relay import AddingRelay
from linnet.rooms.authoring import check_limits, found
from linnet.rooms.commands import (
    AddRelay,
    CreateRoom,
    ExamineLedger,
    ExamineSecurity,
    ExamineState,
    FetchChunk,
    ForgetRoom,
    JoinRoom,
    KeepChunk,
    MakeTicket,
    ReadRoom,
    Redact,
    SendToRoom,
    SetMembership,
    ShareHistory,
)
from linnet.rooms.content import CREATORS, HISTORY, ROOM_VERSION, Create, Membership
from linnet.rooms.effects import RoomEffect, RoomStep
from linnet.rooms.governing import Draft, Governing, drafts_of, founding
from linnet.rooms.inviting import ticket_of
from linnet.rooms.joining import Joining
from linnet.rooms.messages import RelayAnswer
from linnet.rooms.registry import Registry
from linnet.rooms.results import LedgerIs, Reading, RoomMade, RoomResult
from linnet.rooms.room import Room
from linnet.rooms.secrecy.history import history_bodies
from linnet.rooms.secrecy.security import security_of
from linnet.rooms.status import CALLED, state_of

Looking = ExamineState | ExamineSecurity | ExamineLedger
Asked = (
    Governing
    | Looking
    | CreateRoom
    | JoinRoom
    | MakeTicket
    | AddRelay
    | ReadRoom
    | ForgetRoom
    | KeepChunk
    | FetchChunk
)


_NOTHING = EventId(bytes(32))


class Desk:
    """Takes commands. What cannot be answered at once waits in `joining` and `adding`."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._context = registry.setting.context
        self.joining: dict[TopicId, Joining] = {}
        self.adding: dict[bytes, AddingRelay] = {}
        """Questions to relays, by room and relay."""

    def ask(self, request: int, command: Asked, now: float) -> list[RoomEffect]:
        """Carry a command out, or say why not."""
        try:
            return self._ask(request, command, now)
        except Refused as error:
            return _declined(request, error.reason, error.detail)

    def _ask(self, request: int, command: Asked, now: float) -> list[RoomEffect]:
        match command:
            case CreateRoom():
                return self._create(request, command, now)
            case JoinRoom():
                return self._join(request, command, now)
            case MakeTicket(room):
                return _reply(request, ticket_of(self._room(room), command))
            case AddRelay(room):
                return self._add_relay(request, self._room(room), command)
            case ReadRoom():
                return self._read(request, command)
            case ExamineState() | ExamineSecurity() | ExamineLedger():
                return _reply(request, self._examine(command, now))
            case ForgetRoom(room):
                return self._forget(request, self._room(room), now)
            case KeepChunk(room):
                return [*self._room(room).chunks.keep(request, command, now)]
            case FetchChunk(room):
                known_room = self._room(room)
                return [*known_room.chunks.fetch(request, command, known_room.parts.sources)]
            case _:
                return self._govern(request, command, now)

    def _examine(self, command: Looking, now: float) -> RoomResult:
        room = self._room(command.room)
        match command:
            case ExamineState():
                return state_of(room)
            case ExamineSecurity():
                return security_of(room, now)
            case ExamineLedger(_, event, limit):
                fates = room.ledger.newest(limit) if event is None else (room.ledger.fates(event),)
                known = tuple(each for each in fates if each is not None)
                if event is not None and not known:
                    raise Refused(Reason.UNKNOWN, "the ledger has no event of ours with this id")
                return LedgerIs(room.id, known)

    def _govern(self, request: int, command: Governing, now: float) -> list[RoomEffect]:
        room = self._room(command.room)
        guarding = room.guarding
        if guarding is None or not isinstance(command, SendToRoom | Redact | ShareHistory):
            return room.settle(self._carry_out(request, room, command, now), now)
        self._drafts(room, command)  # What makes no sense is refused at once.
        if not room.is_active:
            is_banned = room.membership is Membership.BAN
            raise Refused(Reason.BANNED if is_banned else Reason.NOT_A_MEMBER, "we are not in the room")
        if room.view.is_revoked(self._context.author, self._context.device):
            raise Refused(Reason.CARD_REVOKED, "this device was revoked in the room")
        if guarding.must_wait(now):
            later = partial(self._carry_out, request, room, command)
            return room.settle(guarding.park(request, later, now), now)
        return room.settle([*guarding.ready(now), *self._carry_out(request, room, command, now)], now)

    def _carry_out(self, request: int, room: Room, command: Governing, now: float) -> list[RoomStep]:
        """Say what a command asks for, and answer it."""
        made, declined, effects = room.passing.say(self._drafts(room, command), now)
        deadline = command.deadline if isinstance(command, SendToRoom) else None
        if deadline is not None:
            for verified in made:
                effects += room.ledger.deadline(verified.head, deadline, now)
        return [*effects, room.passing.answer(request, made, declined)]

    def _drafts(self, room: Room, command: Governing) -> list[Draft]:
        """The events that carry a command out."""
        if not isinstance(command, ShareHistory):
            return drafts_of(command, room.view)
        secrecy = room.parts.secrecy
        if secrecy is None:
            raise Refused(Reason.NOT_ALLOWED, "the room is not encrypted: whoever joins reads all of it")
        shown = secrecy.opening.shareable(command.newest)
        return [Draft(HISTORY, None, body) for body in history_bodies(shown)]

    def _create(self, request: int, command: CreateRoom, now: float) -> list[RoomEffect]:
        context = self._context
        if len(command.creators) > CREATORS:
            raise Refused(Reason.TOO_MANY, f"{CREATORS} creators beside ourselves at most")
        drafts = founding(command, context.author)
        for draft in drafts:
            check_limits(*draft)
        content = Create(ROOM_VERSION, command.creators, context.entropy(16), command.newcomers)
        room, _ = self._registry.open(found(context, content, now), newcomer=False, now=now)
        made, declined, effects = room.passing.say(drafts, now)
        if declined is not None:
            raise Refused(declined.reason, declined.detail)
        if room.guarding is not None:
            effects += room.guarding.found(now)
        begun = room.settle([*effects, *room.start(now)], now)
        return [*begun, AfterCommit((Reply(request, RoomMade(room.id, made[0].head)),))]

    def _join(self, request: int, command: JoinRoom, now: float) -> list[RoomEffect]:
        known = self._registry.get(command.room)
        if known is not None and known.is_active:
            return self._refresh(request, known, command, now)
        if command.room in self.joining:
            raise Refused(Reason.IN_USE, "this node is joining the room already")
        if not command.contacts:
            raise Refused(Reason.NO_ADDRESS, "nobody to ask: an invitation names members or relays")
        contacts = tuple(each for each in command.contacts if not self._is_out_of_reach(each))
        if not contacts:
            detail = (
                "beyond local networks this node has links to its proxies alone: join by an invitation that "
                "names one as a relay"
            )
            raise Refused(Reason.NO_ADDRESS, detail)
        joining = Joining(command.room, request, command.ticket, contacts, command.knock, self._context.card)
        self.joining[command.room] = joining
        if command.called is not None:
            self._context.store.cells.put(CALLED, command.room, command.called.encode())
        return [*joining.begin(self._context.links, command.patience)]

    def _refresh(self, request: int, room: Room, command: JoinRoom, now: float) -> list[RoomEffect]:
        """We are in the room: whoever is named with an address is tried there, members and relays alike."""
        contacts = tuple(
            each
            for each in command.contacts
            if each.hints and each.peer != self._context.peer and not self._is_out_of_reach(each)
        )
        if not contacts:
            raise Refused(
                Reason.IN_USE, "this node is in the room already, and no address of others is named"
            )
        effects: list[RoomEffect] = [*room.neighbors.know(contacts, now)]
        for contact in contacts:
            effects += room.settle(room.relays.told(contact, now), now)
        made = RoomMade(room.id, _NOTHING, len(contacts))
        return [*effects, AfterCommit((Reply(request, made),))]

    def _is_out_of_reach(self, contact: Contact) -> bool:
        only = self._registry.setting.only
        return only is not None and contact.peer not in only

    def shown(self, joining: Joining, room: Room, now: float) -> list[RoomEffect]:
        """We know the room's rules: say that we join, or knock."""
        membership = Membership.KNOCK if joining.knock else Membership.JOIN
        made, declined, effects = room.passing.say(room.joining_drafts(membership, joining.ticket), now)
        if declined is not None:
            return [*self.ended(joining, declined, now), *room.settle(effects, now)]
        joining.joined = made[0].head
        introduced = room.settle([*effects, *room.introduce(made[0], joining.answering, now)], now)
        return [*introduced, *joining.again(self._context.links)]

    def ask_again(self, joining: Joining, now: float) -> list[RoomEffect]:
        """No answer for a while: to who shows us the room, or to our join."""
        effects: list[RoomEffect] = [*joining.again(self._context.links)]
        room, peer = self._registry.get(joining.room), joining.answering
        if joining.joined is not None and room is not None and peer in self._context.links:
            effects += room.settle(room.introduce_again(peer, now), now)
        return effects

    def ended(self, joining: Joining, result: Declined | None, now: float) -> list[RoomEffect]:
        """Somebody has taken our join, or nobody will."""
        self.joining.pop(joining.room, None)
        effects: list[RoomEffect] = [*joining.end()]
        room = self._registry.get(joining.room)
        if room is not None:
            room.taking.asked.clear()
        if result is not None and room is not None:
            effects += self._leave(room, now)
            effects += self._registry.forget(room, now) if joining.opened else []
        if result is None and room is not None:
            effects = [*self._met(joining, room, now), *effects]
        answer: RoomResult = result or RoomMade(joining.room, joining.joined or _NOTHING)
        return [*effects, AfterCommit((Reply(joining.request, answer),))]

    def _met(self, joining: Joining, room: Room, now: float) -> list[RoomEffect]:
        """Stay with the members who were asked, whoever of them, or a relay, has answered first."""
        effects: list[RoomEffect] = [*room.neighbors.know(joining.contacts.values(), now)]
        for peer in joining.contacts:
            if peer in self._context.links and not room.view.is_relay(peer):
                effects += room.settle(room.link_up(peer, now), now)
        return effects

    def impatient(self, joining: Joining, now: float) -> list[RoomEffect]:
        """The time that a join was given is over."""
        if joining.joined is not None:
            detail = "nobody has said that our join is in the room"
            return self.ended(joining, Declined(Reason.TIMEOUT, detail), now)
        reason = joining.last_reason or Reason.TIMEOUT
        detail = "nobody who was asked has shown the room" if reason is Reason.TIMEOUT else "refused"
        return self.ended(joining, Declined(reason, detail), now)

    def _add_relay(self, request: int, room: Room, command: AddRelay) -> list[RoomEffect]:
        relay = command.contact.peer
        if room.view.is_relay(relay):
            raise Refused(Reason.IN_USE, "it is a relay of this room already")
        if self._is_out_of_reach(command.contact):
            detail = "beyond local networks this node has links to its proxies alone: name one of them"
            raise Refused(Reason.NOT_ALLOWED, detail)
        key = room.id + relay
        if key in self.adding:
            raise Refused(Reason.IN_USE, "it is being asked already")
        ours = Contact(self._context.peer, room.parts.listens)
        contacts = (ours, *room.neighbors.contacts(8))
        self.adding[key] = adding = AddingRelay(
            room.id, request, command.contact, room.meeting.greeting(answer=True), contacts
        )
        return [*adding.begin(self._context.links, command.patience)]

    def relay_answered(self, adding: AddingRelay, answer: RelayAnswer, now: float) -> list[RoomEffect]:
        """A relay will serve a room, or will not."""
        del self.adding[adding.room + adding.contact.peer]
        effects: list[RoomEffect] = [*adding.end()]
        room = self._registry.get(adding.room)
        if room is None or answer.reason is not None:
            reason = answer.reason or Reason.UNKNOWN_ROOM
            return [*effects, *_declined(adding.request, reason, "the relay does not serve this room")]
        try:
            adding.check(answer, self._context.card_check)
        except RemoteError as error:
            return [*effects, *_declined(adding.request, error.reason, error.detail)]
        made, declined, said = room.passing.say(adding.named(answer, room.view), now)
        return [*effects, *room.settle(said, now), room.passing.answer(adding.request, made, declined)]

    def relay_silent(self, adding: AddingRelay) -> list[RoomEffect]:
        """The time that a relay was given is over."""
        del self.adding[adding.room + adding.contact.peer]
        return [*adding.end(), *_declined(adding.request, Reason.TIMEOUT, "the relay did not answer")]

    def _read(self, request: int, command: ReadRoom) -> list[RoomEffect]:
        room = self._room(command.room)
        if command.subscription in self._registry.by_subscription:
            raise Refused(Reason.IN_USE, f"there is a subscription {command.subscription} already")
        if command.name is not None and room.parts.readers.is_named(command.name):
            raise Refused(Reason.IN_USE, f"the subscription {command.name!r} is being read already")
        resumed, effects = room.parts.readers.add(command)
        self._registry.by_subscription[command.subscription] = room
        return [AfterCommit((Reply(request, Reading(room.id, resumed)),)), *effects]

    def _forget(self, request: int, room: Room, now: float) -> list[RoomEffect]:
        effects = [*self._leave(room, now), *self._registry.forget(room, now)]
        return [*effects, AfterCommit((Reply(request, Done()),))]

    def _leave(self, room: Room, now: float) -> list[RoomEffect]:
        """Be in a room no longer, if we are."""
        if not room.is_active:
            return []
        leave = SetMembership(room.id, self._context.author, Membership.LEAVE)
        _, _, said = room.passing.say(drafts_of(leave, room.view), now)
        return room.settle(said, now)

    def _room(self, room: TopicId) -> Room:
        known = self._registry.get(room)
        if known is None:
            raise Refused(Reason.UNKNOWN_ROOM, "this node is not in that room")
        return known


def _reply(request: int, result: RoomResult) -> list[RoomEffect]:
    return [Reply(request, result)]


def _declined(request: int, reason: Reason, detail: str) -> list[RoomEffect]:
    return [Reply(request, Declined(reason, detail))]
