"""What the application asks of rooms: each command answered once."""

from __future__ import annotations

from functools import partial

from linnet.core.errors import Refused, RemoteError
from linnet.core.ids import Contact, EventId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.commands import Declined, Done
from linnet.machine.part import Part, on_command, on_timer
from linnet.rooms.adding_relay import AddingRelay, RelayAnswerDue, RelayRepeatDue
from linnet.rooms.commands import (
    AddRelay,
    CreateRoom,
    DropRelay,
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
    RevokeInRoom,
    SendToRoom,
    SetLevel,
    SetMembership,
    SetPower,
    SetRetention,
    SetRule,
    SetState,
    ShareHistory,
)
from linnet.rooms.content import CREATORS, HISTORY, ROOM_VERSION, Create, Membership
from linnet.rooms.encryption.history import history_bodies
from linnet.rooms.encryption.security import security_of
from linnet.rooms.event_builder import check_limits, found
from linnet.rooms.governing import Draft, Governing, drafts_of, founding
from linnet.rooms.inviting import ticket_of
from linnet.rooms.joining import JoinEndDue, Joining, JoinRepeatDue
from linnet.rooms.messages import RelayAnswer
from linnet.rooms.registry import Registry
from linnet.rooms.results import LedgerIs, Reading, RoomMade
from linnet.rooms.room import Room
from linnet.rooms.status import CALLED, state_of

_NOTHING = EventId(bytes(32))


class Desk(Part):
    """Takes commands about rooms. What cannot be answered at once waits in `joining` and `adding`."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._context = registry.setting.context
        self._out = registry.setting.out
        self.joining: dict[TopicId, Joining] = {}
        self.adding: dict[bytes, AddingRelay] = {}
        """Questions to relays, by room and relay."""

    # Rooms that are founded and forgotten, and what is known of them.

    @on_command(CreateRoom)
    def create_room(self, request: int, command: CreateRoom, now: float) -> None:
        """Found a room."""
        context = self._context
        if len(command.creators) > CREATORS:
            raise Refused(Reason.TOO_MANY, f"{CREATORS} creators beside ourselves at most")
        drafts = founding(command, context.author)
        for draft in drafts:
            check_limits(*draft)
        content = Create(ROOM_VERSION, command.creators, context.entropy(16), command.newcomers)
        room = self._registry.open(found(context, content, now), newcomer=False, now=now)
        made, declined = room.passing.say(drafts, now)
        if declined is not None:
            raise Refused(declined.reason, declined.detail)
        if room.guarding is not None:
            room.guarding.found(now)
        room.start(now)
        room.settle(now)
        self._out.committed.reply(request, RoomMade(room.id, made[0].head))

    @on_command(ForgetRoom)
    def forget_room(self, request: int, command: ForgetRoom, now: float) -> None:
        """Leave a room, and have nothing to do with it any more."""
        room = self._room(command.room)
        self._leave(room, now)
        self._registry.forget(room, now)
        self._out.committed.reply(request, Done())

    @on_command(MakeTicket)
    def make_ticket(self, request: int, command: MakeTicket, now: float) -> None:
        """Make a ticket by which others join a room."""
        self._out.reply(request, ticket_of(self._room(command.room), command))

    @on_command(ReadRoom)
    def read_room(self, request: int, command: ReadRoom, now: float) -> None:
        """Begin a subscription of a room."""
        room = self._room(command.room)
        if command.subscription in self._registry.by_subscription:
            raise Refused(Reason.IN_USE, f"there is a subscription {command.subscription} already")
        readers = room.parts.readers
        if command.name is not None and readers.is_named(command.name):
            raise Refused(Reason.IN_USE, f"the subscription {command.name!r} is being read already")
        resumed = readers.add(command)
        self._registry.by_subscription[command.subscription] = room
        self._out.committed.reply(request, Reading(room.id, resumed))
        readers.hand_log(command.subscription)

    @on_command(ExamineState)
    def examine_state(self, request: int, command: ExamineState, now: float) -> None:
        """Tell the state of a room."""
        self._out.reply(request, state_of(self._room(command.room)))

    @on_command(ExamineSecurity)
    def examine_security(self, request: int, command: ExamineSecurity, now: float) -> None:
        """Tell how the keys of a room stand."""
        self._out.reply(request, security_of(self._room(command.room), now))

    @on_command(ExamineLedger)
    def examine_ledger(self, request: int, command: ExamineLedger, now: float) -> None:
        """Tell what became of events of ours."""
        room, event = self._room(command.room), command.event
        fates = room.ledger.newest(command.limit) if event is None else (room.ledger.fates(event),)
        known = tuple(each for each in fates if each is not None)
        if event is not None and not known:
            raise Refused(Reason.UNKNOWN, "the ledger has no event of ours with this id")
        self._out.reply(request, LedgerIs(room.id, known))

    @on_command(KeepChunk)
    def keep_chunk(self, request: int, command: KeepChunk, now: float) -> None:
        """Keep a piece of an attachment."""
        self._room(command.room).chunks.keep_chunk(request, command, now)

    @on_command(FetchChunk)
    def fetch_chunk(self, request: int, command: FetchChunk, now: float) -> None:
        """Fetch a piece of an attachment."""
        room = self._room(command.room)
        room.chunks.fetch_chunk(request, command, room.parts.sources)

    # Events of our own.

    @on_command(SendToRoom)
    def send_to_room(self, request: int, command: SendToRoom, now: float) -> None:
        """Send messages to a room."""
        self._say_sealed(request, command, now)

    @on_command(Redact)
    def redact(self, request: int, command: Redact, now: float) -> None:
        """Take an event back."""
        self._say_sealed(request, command, now)

    @on_command(ShareHistory)
    def share_history(self, request: int, command: ShareHistory, now: float) -> None:
        """Show newcomers what was said before."""
        self._say_sealed(request, command, now)

    @on_command(SetMembership)
    def set_membership(self, request: int, command: SetMembership, now: float) -> None:
        """Invite, remove or ban a person, or leave."""
        self._say(request, command, now)

    @on_command(SetPower)
    def set_power(self, request: int, command: SetPower, now: float) -> None:
        """Say which level a room asks for what."""
        self._say(request, command, now)

    @on_command(SetLevel)
    def set_level(self, request: int, command: SetLevel, now: float) -> None:
        """Give a person a level."""
        self._say(request, command, now)

    @on_command(SetRule)
    def set_rule(self, request: int, command: SetRule, now: float) -> None:
        """Say who may join a room."""
        self._say(request, command, now)

    @on_command(SetState)
    def set_state(self, request: int, command: SetState, now: float) -> None:
        """Set a piece of a room's state."""
        self._say(request, command, now)

    @on_command(SetRetention)
    def set_retention(self, request: int, command: SetRetention, now: float) -> None:
        """Say how long relays keep the events of a room."""
        self._say(request, command, now)

    @on_command(DropRelay)
    def drop_relay(self, request: int, command: DropRelay, now: float) -> None:
        """Use a relay no longer in a room."""
        self._say(request, command, now)

    @on_command(RevokeInRoom)
    def revoke_in_room(self, request: int, command: RevokeInRoom, now: float) -> None:
        """Revoke a device in a room."""
        self._say(request, command, now)

    def _say(self, request: int, command: Governing, now: float) -> None:
        """Say what a command asks for."""
        room = self._room(command.room)
        self._carry_out(request, room, command, now)
        room.settle(now)

    def _say_sealed(self, request: int, command: SendToRoom | Redact | ShareHistory, now: float) -> None:
        """Say what is sealed in an encrypted room: once there are keys, and all who are to read have them."""
        room = self._room(command.room)
        guarding = room.guarding
        if guarding is None:
            self._say(request, command, now)
            return
        self._drafts(room, command)  # What makes no sense is refused at once.
        if not room.is_active:
            is_banned = room.membership is Membership.BAN
            raise Refused(Reason.BANNED if is_banned else Reason.NOT_A_MEMBER, "we are not in the room")
        if room.view.is_revoked(self._context.author, self._context.device):
            raise Refused(Reason.CARD_REVOKED, "this device was revoked in the room")
        if guarding.must_wait(now):
            guarding.park(request, partial(self._carry_out, request, room, command), now)
        else:
            guarding.prepare(now)
            self._carry_out(request, room, command, now)
        room.settle(now)

    def _carry_out(self, request: int, room: Room, command: Governing, now: float) -> None:
        """Say what a command asks for, and answer it."""
        made, declined = room.passing.say(self._drafts(room, command), now)
        deadline = command.deadline if isinstance(command, SendToRoom) else None
        if deadline is not None:
            for verified in made:
                room.ledger.set_deadline(verified.head, deadline, now)
        room.passing.answer(request, made, declined)

    def _drafts(self, room: Room, command: Governing) -> list[Draft]:
        """The events that carry a command out."""
        if not isinstance(command, ShareHistory):
            return drafts_of(command, room.view)
        secrecy = room.parts.secrecy
        if secrecy is None:
            raise Refused(Reason.NOT_ALLOWED, "the room is not encrypted: whoever joins reads all of it")
        shown = secrecy.opening.shareable(command.newest)
        return [Draft(HISTORY, None, body) for body in history_bodies(shown)]

    # Joining.

    def join_room(self, request: int, command: JoinRoom, now: float) -> None:
        """Join a room, or try others of it where an invitation names them."""
        known = self._registry.get(command.room)
        if known is not None and known.is_active:
            self._try_contacts(request, known, command, now)
            return
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
        card = self._context.card
        joining = Joining(command.room, request, command.ticket, contacts, command.knock, card, self._out)
        self.joining[command.room] = joining
        if command.called is not None:
            self._context.store.cells.put(CALLED, command.room, command.called.encode())
        joining.begin(self._context.links, command.patience)

    def _try_contacts(self, request: int, room: Room, command: JoinRoom, now: float) -> None:
        """Try whoever is named with an address there, members and relays alike: we are in the room."""
        contacts = tuple(
            each
            for each in command.contacts
            if each.hints and each.peer != self._context.peer and not self._is_out_of_reach(each)
        )
        if not contacts:
            raise Refused(
                Reason.IN_USE, "this node is in the room already, and no address of others is named"
            )
        room.neighbors.add(contacts, now)
        for contact in contacts:
            room.relays.try_address(contact, now)
            room.settle(now)
        self._out.committed.reply(request, RoomMade(room.id, _NOTHING, len(contacts)))

    def _is_out_of_reach(self, contact: Contact) -> bool:
        only = self._registry.setting.only
        return only is not None and contact.peer not in only

    def say_join(self, joining: Joining, room: Room, now: float) -> None:
        """Say that we join, or knock, now that we know the room's rules."""
        membership = Membership.KNOCK if joining.knock else Membership.JOIN
        made, declined = room.passing.say(room.joining_drafts(membership, joining.ticket), now)
        if declined is not None:
            self.end_join(joining, declined, now)
            room.settle(now)
            return
        joining.joined = made[0].head
        room.introduce(made[0], joining.answering, now)
        room.settle(now)
        joining.ask_again(self._context.links)

    @on_timer(JoinRepeatDue)
    def repeat_join(self, timer: JoinRepeatDue, now: float) -> None:
        """Ask again who shows us a room, or answers our join: there was no answer for a while."""
        joining = self.joining.get(timer.room)
        if joining is None:
            return
        joining.ask_again(self._context.links)
        room, peer = self._registry.get(joining.room), joining.answering
        if joining.joined is not None and room is not None and peer in self._context.links:
            room.introduce_again(peer, now)
            room.settle(now)

    @on_timer(JoinEndDue)
    def give_up_join(self, timer: JoinEndDue, now: float) -> None:
        """Decline a join whose time is over."""
        joining = self.joining.get(timer.room)
        if joining is None:
            return
        reason = joining.last_reason or Reason.TIMEOUT
        detail = "nobody who was asked has shown the room" if reason is Reason.TIMEOUT else "refused"
        if joining.joined is not None:
            reason, detail = Reason.TIMEOUT, "nobody has said that our join is in the room"
        self.end_join(joining, Declined(reason, detail), now)

    def end_join(self, joining: Joining, result: Declined | None, now: float) -> None:
        """End a join: somebody has taken it, or nobody will, and why."""
        self.joining.pop(joining.room, None)
        room = self._registry.get(joining.room)
        if room is not None:
            room.taking.asked.clear()
        if result is None and room is not None:
            self._stay_with_contacts(joining, room, now)
        joining.end()
        if result is not None and room is not None:
            self._leave(room, now)
            if joining.opened:
                self._registry.forget(room, now)
        self._out.committed.reply(
            joining.request, result or RoomMade(joining.room, joining.joined or _NOTHING)
        )

    def _stay_with_contacts(self, joining: Joining, room: Room, now: float) -> None:
        """Stay with the members who were asked, whoever of them, or a relay, has answered first."""
        room.neighbors.add(joining.contacts.values(), now)
        for peer in joining.contacts:
            if peer in self._context.links and not room.view.is_relay(peer):
                room.handle_link_up(peer, now)
                room.settle(now)

    def _leave(self, room: Room, now: float) -> None:
        """Be in a room no longer, if we are."""
        if room.is_active:
            leave = SetMembership(room.id, self._context.author, Membership.LEAVE)
            room.passing.say(drafts_of(leave, room.view), now)
            room.settle(now)

    # Relays that are added.

    @on_command(AddRelay)
    def add_relay(self, request: int, command: AddRelay, now: float) -> None:
        """Ask a relay to serve a room."""
        room, relay = self._room(command.room), command.contact.peer
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
            room.id, request, command.contact, room.meeting.greeting(answer=True), contacts, self._out
        )
        adding.begin(self._context.links, command.patience)

    def handle_relay_answer(self, adding: AddingRelay, answer: RelayAnswer, now: float) -> None:
        """Name a relay that will serve a room, or decline."""
        del self.adding[adding.room + adding.contact.peer]
        adding.end()
        room = self._registry.get(adding.room)
        if room is None or answer.reason is not None:
            reason = answer.reason or Reason.UNKNOWN_ROOM
            self._out.reply(adding.request, Declined(reason, "the relay does not serve this room"))
            return
        try:
            adding.check(answer, self._context.card_check)
        except RemoteError as error:
            self._out.reply(adding.request, Declined(error.reason, error.detail))
            return
        made, declined = room.passing.say(adding.named(answer, room.view), now)
        room.settle(now)
        room.passing.answer(adding.request, made, declined)

    @on_timer(RelayRepeatDue)
    def repeat_relay_question(self, timer: RelayRepeatDue, now: float) -> None:
        """Ask a relay again that has not answered for a while."""
        adding = self.adding.get(timer.room + timer.relay)
        if adding is not None:
            adding.ask_again(self._context.links)

    @on_timer(RelayAnswerDue)
    def give_up_relay(self, timer: RelayAnswerDue, now: float) -> None:
        """Decline to add a relay whose time is over."""
        adding = self.adding.get(timer.room + timer.relay)
        if adding is not None:
            self.end_relay_question(adding)

    def end_relay_question(self, adding: AddingRelay) -> None:
        """Wait for the answer of a relay no longer."""
        del self.adding[adding.room + adding.contact.peer]
        adding.end()
        self._out.reply(adding.request, Declined(Reason.TIMEOUT, "the relay did not answer"))

    def _room(self, room: TopicId) -> Room:
        known = self._registry.get(room)
        if known is None:
            raise Refused(Reason.UNKNOWN_ROOM, "this node is not in that room")
        return known
