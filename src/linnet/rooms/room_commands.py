"""Handles the commands about rooms: each is answered once, and most become events of our own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar, assert_never

from msgspec.structs import replace

from linnet.core.errors import Refused, RemoteError
from linnet.core.ids import AuthorId, Contact, PeerId, TopicId
from linnet.core.inputs import LinkUp
from linnet.core.reasons import Reason
from linnet.identity.text import Sort, to_text
from linnet.machine.commands import Declined
from linnet.machine.part import Part, on_command, on_input, on_message, on_timer
from linnet.rooms.auth.room_state import View
from linnet.rooms.commands import (
    AddRelay,
    CompareRelays,
    CreateRoom,
    DropRelay,
    ExamineLedger,
    ExaminePrice,
    ExamineSecurity,
    ExamineState,
    FetchChunk,
    KeepChunk,
    LeaveRoom,
    LedgerIs,
    MakeTicket,
    Reading,
    ReadRoom,
    Redact,
    RelayPrice,
    RevokeInRoom,
    RoomLeft,
    RoomMade,
    SendToRoom,
    SetLevel,
    SetMembership,
    SetPower,
    SetRetention,
    SetRule,
    SetState,
    ShareHistory,
    TicketMade,
)
from linnet.rooms.encryption.group_maintenance import GroupMaintenance
from linnet.rooms.encryption.room_group import history_bodies
from linnet.rooms.event_positions import Draft, check_limits, found
from linnet.rooms.event_types import (
    CONTROL_KINDS,
    CREATORS,
    GROUP,
    HISTORY,
    JOIN_RULES,
    MEMBER,
    NAME,
    POWER,
    REDACTION,
    RELAY,
    RETENTION,
    REVOCATION,
    ROOM_VERSION,
    TOPIC,
    Create,
    JoinRule,
    JoinRules,
    Member,
    Membership,
    Power,
    Redaction,
    Relay,
    Retention,
    Revoked,
    body_of,
    member_key,
)
from linnet.rooms.invitations import issue_ticket
from linnet.rooms.messages import RelayAnswer
from linnet.rooms.relay_client.roster import RelayAnswerDue, RelayQuestion, RelayRepeatDue
from linnet.rooms.room import Room, RoomRegistry
from linnet.rooms.room_status import name_of, security_of, state_of
from linnet.rooms.stamps import StampPrice, seconds_of
from linnet.trace.records import Kind, Record

Governing = (
    SetMembership
    | SetPower
    | SetLevel
    | SetRule
    | SetState
    | SetRetention
    | DropRelay
    | SendToRoom
    | Redact
    | ShareHistory
    | RevokeInRoom
)

_PRICES = 64
"""The most prices of relays that are remembered."""
P = TypeVar("P", bound=Governing)


def publishes(kind: type[P]) -> Callable[[RoomCommands, int, P, float], None]:
    """Make a handler of commands of this type, which become events of our own."""

    @on_command(kind)
    def handle(commands: RoomCommands, request: int, command: P, now: float) -> None:
        commands.publish(request, command, now)

    return handle


class RoomCommands(Part):
    """Carries out commands about rooms. Requests to relays wait in `adding` for their answers."""

    def __init__(self, registry: RoomRegistry) -> None:
        self._registry = registry
        self._context = registry.setting.context
        self._out = registry.setting.out
        self.adding: dict[bytes, RelayQuestion] = {}
        """The open requests to relays, by room and relay."""
        self._prices: dict[bytes, StampPrice] = {}
        """The stamps that open relays asked last, by room and relay."""

    def stop(self, now: float) -> None:
        """Decline to add the relays that have not answered: the node stops."""
        for adding in list(self.adding.values()):
            self.end_relay_question(adding)

    # Founding, leaving and examining rooms.

    @on_command(CreateRoom)
    def create_room(self, request: int, command: CreateRoom, now: float) -> None:
        """Found a room."""
        context = self._context
        if len(command.creators) > CREATORS:
            raise Refused(Reason.TOO_MANY, f"{CREATORS} creators beside ourselves at most")
        drafts = founding(command, context.author)
        for draft in drafts:
            check_limits(*draft)
        # A room that everyone may join is not encrypted: everyone can read it.
        secret = None if command.rule is JoinRule.PUBLIC else command.newcomers
        content = Create(ROOM_VERSION, command.creators, context.entropy(16), secret)
        room = self._registry.open(found(context, content, now), newcomer=False, now=now)
        made, declined = room.passing.say(drafts, now)
        if declined is not None:
            raise Refused(declined.reason, declined.detail)
        if room.maintenance is not None:
            room.maintenance.found(now)
        room.start(now)
        room.settle(now)
        self._out.committed.reply(request, RoomMade(room.id, made[0].head))

    @on_command(LeaveRoom)
    def leave_room(self, request: int, command: LeaveRoom, now: float) -> None:
        """Leave a room, and forget it once another peer knows."""
        room = self._room(command.room)
        others, neighbors, relays = room.others, len(room.guests.members), room.relays.up
        declined = room.leave(now)
        if declined is not None and not room.is_revoked:
            raise Refused(declined.reason, declined.detail)
        until = self._registry.depart(room, now)
        if declined is not None:
            left = RoomLeft(room.id, others, 0, (), None, declined.reason)
        else:
            left = RoomLeft(room.id, others, neighbors, relays, until)
        self._out.committed.reply(request, left)

    @on_command(MakeTicket)
    def make_ticket(self, request: int, command: MakeTicket, now: float) -> None:
        """Make a ticket by which others can join a room."""
        room = self._room(command.room)
        if command.expires_ms <= now * 1000:
            detail = "nobody could join by an invitation that has expired: give it a lifetime above 0"
            raise Refused(Reason.INVITATION_EXPIRED, detail)
        self._out.reply(request, ticket_of(room, command))

    @on_command(ReadRoom)
    def read_room(self, request: int, command: ReadRoom, now: float) -> None:
        """Begin a subscription of a room."""
        room = self._room(command.room)
        if command.subscription in self._registry.by_subscription:
            raise Refused(Reason.IN_USE, f"there is a subscription {command.subscription} already")
        readers = room.subscriptions
        if command.name is not None and readers.is_named(command.name):
            raise Refused(Reason.IN_USE, f"the subscription {command.name!r} is being read already")
        resumed = readers.add(command)
        self._registry.by_subscription[command.subscription] = room
        self._out.committed.reply(request, Reading(room.id, resumed))
        readers.hand_log(command.subscription)

    @on_command(ExamineState)
    def examine_state(self, request: int, command: ExamineState, now: float) -> None:
        """Reply with the state of a room."""
        self._out.reply(request, state_of(self._room(command.room)))

    @on_command(ExamineSecurity)
    def examine_security(self, request: int, command: ExamineSecurity, now: float) -> None:
        """Reply with the state of a room's keys."""
        self._out.reply(request, security_of(self._room(command.room), now))

    @on_command(ExamineLedger)
    def examine_ledger(self, request: int, command: ExamineLedger, now: float) -> None:
        """Reply with the fates of our events."""
        room, event = self._room(command.room), command.event
        fates = room.ledger.newest(command.limit) if event is None else (room.ledger.fates(event),)
        known = tuple(each for each in fates if each is not None)
        if event is not None and not known:
            raise Refused(Reason.UNKNOWN, "the ledger has no event of ours with this id")
        self._out.reply(request, LedgerIs(room.id, known))

    @on_command(KeepChunk)
    def keep_chunk(self, request: int, command: KeepChunk, now: float) -> None:
        """Store a piece of an attachment."""
        self._room(command.room).chunks.keep_chunk(request, command, now)

    @on_command(FetchChunk)
    def fetch_chunk(self, request: int, command: FetchChunk, now: float) -> None:
        """Fetch a piece of an attachment."""
        self._room(command.room).chunks.fetch_chunk(request, command, now)

    # Events of our own.

    send_to_room = publishes(SendToRoom)
    redact = publishes(Redact)
    share_history = publishes(ShareHistory)
    set_membership = publishes(SetMembership)
    set_power = publishes(SetPower)
    set_level = publishes(SetLevel)
    set_rule = publishes(SetRule)
    set_state = publishes(SetState)
    set_retention = publishes(SetRetention)
    drop_relay = publishes(DropRelay)
    revoke_in_room = publishes(RevokeInRoom)

    def publish(self, request: int, command: Governing, now: float) -> None:
        """Publish the events of a command; sealed ones wait until all members can have the key."""
        room = self._room(command.room)
        if room.maintenance is None or not isinstance(command, SendToRoom | Redact | ShareHistory):
            self._carry_out(request, room, command, now)
        else:
            self._say_sealed(request, room, room.maintenance, command, now)
        room.settle(now)

    def _say_sealed(
        self, request: int, room: Room, maintenance: GroupMaintenance, command: Governing, now: float
    ) -> None:
        """Publish an event that is sealed, once all members can have its key."""
        self._drafts(room, command)  # Refuses an invalid command at once.
        if not room.is_active:
            is_banned = room.membership is Membership.BAN
            raise Refused(Reason.BANNED if is_banned else Reason.NOT_A_MEMBER, "we are not in the room")
        if room.is_revoked:
            raise Refused(Reason.CARD_REVOKED, "this device was revoked in the room")
        if maintenance.must_wait(now):
            maintenance.park(request, partial(self._carry_out, request, room, command), now)
        else:
            maintenance.prepare(now)
            self._carry_out(request, room, command, now)

    def _carry_out(self, request: int, room: Room, command: Governing, now: float) -> None:
        """Publish the events of a command, and reply to it."""
        made, declined = room.passing.say(self._drafts(room, command), now)
        deadline = command.deadline if isinstance(command, SendToRoom) else None
        if deadline is not None:
            for verified in made:
                room.ledger.set_deadline(verified.head, deadline, now)
        room.passing.answer(request, made, declined)

    def _drafts(self, room: Room, command: Governing) -> list[Draft]:
        """Draft the events of a command."""
        if not isinstance(command, ShareHistory):
            return drafts_of(command, room.view)
        group = room.group
        if group is None:
            raise Refused(Reason.NOT_ALLOWED, "the room is not encrypted: whoever joins reads all of it")
        shown = group.messages.shareable(command.newest)
        return [Draft(HISTORY, None, body) for body in history_bodies(shown)]

    # Relays that are added.

    @on_command(AddRelay)
    def add_relay(self, request: int, command: AddRelay, now: float) -> None:
        """Ask a relay to serve a room."""
        room, relay = self._room(command.room), command.contact.peer
        if room.view.is_relay(relay):
            raise Refused(Reason.IN_USE, "it is a relay of this room already")
        if self._registry.setting.is_out_of_reach(relay):
            detail = "beyond local networks this node has links to its proxies alone: name one of them"
            raise Refused(Reason.NOT_ALLOWED, detail)
        key = room.id + relay
        if key in self.adding:
            raise Refused(Reason.IN_USE, "it is being asked already")
        ours = Contact(self._context.peer, room.listens)
        contacts = (ours, *room.neighbors.contacts(8))
        self.adding[key] = adding = RelayQuestion(
            request,
            command.contact,
            room.handshake.greeting(answer=True),
            contacts,
            self._out,
            command.stamp,
        )
        adding.begin(self._context.links, command.patience)

    @on_input(LinkUp)
    def ask_linked_relay(self, event: LinkUp, now: float) -> None:
        """Ask a relay that is to be added, now that its link is open."""
        for adding in self.adding.values():
            if adding.contact.peer == event.peer:
                adding.ask()

    @on_message(RelayAnswer)
    def handle_relay_answer(self, peer: PeerId, answer: RelayAnswer, now: float) -> None:
        """Name the relay if it will serve the room, else decline the command."""
        adding = self.adding.pop(answer.room + peer, None)
        if adding is None:
            stale = Record(Kind.REJECTED, answer.room, peer=peer, reason=Reason.STALE, note="RelayAnswer")
            self._out.record(stale)
            return
        adding.end()
        room = self._registry.get(adding.room)
        if room is not None and answer.reason is not None and answer.price is not None:
            self._decline_unpaid(adding, answer.price)
            return
        if room is None or answer.reason is not None:
            reason = answer.reason or Reason.UNKNOWN_ROOM
            self._out.reply(adding.request, Declined(reason, "the relay does not serve this room"))
            return
        try:
            adding.check(answer, self._context.card_check)
        except RemoteError as error:
            self._out.reply(adding.request, Declined(error.reason, error.detail))
            return
        made, declined = room.passing.say(adding.draft_events(answer, room.view), now)
        room.settle(now)
        room.passing.answer(adding.request, made, declined)

    def _decline_unpaid(self, adding: RelayQuestion, price: StampPrice) -> None:
        """Decline to add an open relay that asks a stamp, and remember its price."""
        self._prices[adding.room + adding.contact.peer] = price
        if len(self._prices) > _PRICES:
            del self._prices[next(iter(self._prices))]
        most = self._registry.setting.config.stamp_bits
        asks = (
            f"the relay asks a stamp of {price.bits} bits, about {seconds_of(price.bits):,.0f} s of one core"
        )
        if price.bits > most:
            detail = f"{asks}; this node makes stamps of {most} bits at most (rooms.stamp_bits)"
            self._out.reply(adding.request, Declined(Reason.TOO_EXPENSIVE, detail))
        else:
            self._out.reply(adding.request, Declined(Reason.UNPAID, asks))

    @on_command(ExaminePrice)
    def examine_price(self, request: int, command: ExaminePrice, now: float) -> None:
        """Reply with the stamp that a relay asked last."""
        price = self._prices.get(self._room(command.room).id + command.relay)
        if price is None:
            raise Refused(Reason.UNKNOWN, "the relay has asked no stamp")
        most = self._registry.setting.config.stamp_bits
        self._out.reply(request, RelayPrice(price, self._context.peer, most))

    @on_timer(RelayRepeatDue)
    def repeat_relay_question(self, timer: RelayRepeatDue, now: float) -> None:
        """Ask a relay again that has not answered for a while."""
        adding = self.adding.get(timer.room + timer.relay)
        if adding is not None:
            adding.ask_again(self._context.links)

    @on_timer(RelayAnswerDue)
    def give_up_relay(self, timer: RelayAnswerDue, now: float) -> None:
        """Decline to add a relay that has not answered in time."""
        adding = self.adding.get(timer.room + timer.relay)
        if adding is not None:
            self.end_relay_question(adding)

    def end_relay_question(self, adding: RelayQuestion) -> None:
        """Decline to add a relay that has not answered."""
        del self.adding[adding.room + adding.contact.peer]
        adding.end()
        self._out.reply(adding.request, Declined(Reason.TIMEOUT, "the relay did not answer"))

    @on_command(CompareRelays)
    def compare_relays(self, request: int, command: CompareRelays, now: float) -> None:
        """Compare two relays of a room, or go on with it, and tell how far that is."""
        room = self._room(command.room)
        for relay in (command.old, command.new):
            if not room.view.is_relay(relay):
                raise Refused(Reason.NOT_A_RELAY, f"{to_text(Sort.DEVICE, relay)} is no relay of this room")
        if command.old == command.new:
            raise Refused(Reason.IN_USE, "it is one relay: name another one to take its place")
        self._out.reply(request, room.compare_relays_now(command.old, command.new, now))
        room.settle(now)

    def _room(self, room: TopicId) -> Room:
        known = self._registry.find(room)
        if known is None:
            raise Refused(Reason.UNKNOWN_ROOM, "this node is not in that room")
        return known


FIRST_POWER = Power(
    users_default=0,
    events={NAME: 50, TOPIC: 50, POWER: 100, RELAY: 100, RETENTION: 100, JOIN_RULES: 100},
    events_default=0,
    state_default=50,
    ban=50,
    kick=50,
    redact=50,
    invite=0,
)
"""The power levels of a new room: Matrix's own preset, with the kinds that we add."""

_NAMED = ("ban", "kick", "redact", "invite", "users_default", "events_default", "state_default")


def founding(command: CreateRoom, founder: AuthorId) -> list[Draft]:
    """Draft the events after the create event of a new room."""
    drafts = [
        Draft(MEMBER, member_key(founder), body_of(Member(Membership.JOIN))),
        Draft(POWER, "", body_of(FIRST_POWER)),
        Draft(JOIN_RULES, "", body_of(JoinRules(command.rule))),
    ]
    if command.name is not None:
        drafts.append(Draft(NAME, "", command.name.encode()))
    if command.topic is not None:
        drafts.append(Draft(TOPIC, "", command.topic.encode()))
    return drafts


def drafts_of(command: Governing, view: View) -> list[Draft]:
    """Draft the events of a command, in order; raises `Refused` if it is invalid."""
    match command:
        case SetMembership(_, person, membership, reason):
            return [Draft(MEMBER, member_key(person), body_of(Member(membership, reason)))]
        case SetPower(_, power):
            return [Draft(POWER, "", body_of(power))]
        case SetLevel():
            return [Draft(POWER, "", body_of(_with_level(view.power(), command)))]
        case SetRule(_, rule):
            return [Draft(JOIN_RULES, "", body_of(JoinRules(rule)))]
        case SetState(_, kind, key):
            return [Draft(_plain(kind), key, _state_body(command))]
        case SetRetention(_, seconds):
            return [Draft(RETENTION, "", body_of(Retention(_milliseconds(seconds))))]
        case DropRelay(_, relay):
            return _dropped(command, view, to_text(Sort.DEVICE, relay))
        case SendToRoom():
            return _said(command)
        case Redact(_, event, reason):
            return [Draft(REDACTION, None, body_of(Redaction(event, reason)))]
        case ShareHistory():
            raise Refused(Reason.NOT_ALLOWED, "what is shared depends on what can be read here")
        case RevokeInRoom(_, revocation):
            return [Draft(REVOCATION, revocation.device.hex(), body_of(Revoked(revocation)))]
        case _:
            assert_never(command)


def _plain(kind: str) -> str:
    """Return a kind that nodes do not interpret; raises `Refused` for any other."""
    if kind in CONTROL_KINDS or kind in (REDACTION, GROUP, HISTORY):
        raise Refused(Reason.NOT_ALLOWED, f"{kind} has a command of its own")
    return kind


def _milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds * 1000)


def _said(command: SendToRoom) -> list[Draft]:
    said = (*command.bodies, *(text.encode() for text in command.texts))
    if not said:
        raise Refused(Reason.MALFORMED, "nothing to say")
    return [Draft(_plain(command.kind), None, body) for body in said]


def _state_body(command: SetState) -> bytes:
    if (command.body is None) == (command.text is None):
        raise Refused(Reason.MALFORMED, "give a text or a body, one of them")
    return command.body if command.body is not None else (command.text or "").encode()


def _dropped(command: DropRelay, view: View, key: str) -> list[Draft]:
    named = view.relay_of(command.relay)
    if named is None:
        raise Refused(Reason.NOT_A_RELAY, f"{key} is no relay of this room")
    gone = Draft(RELAY, key, body_of(Relay(False, named.person, ())))
    others = [peer for peer, relay in view.relays() if relay.person == named.person and peer != command.relay]
    if others or view.membership(named.person) is not Membership.JOIN:
        return [gone]
    return [gone, Draft(MEMBER, member_key(named.person), body_of(Member(Membership.LEAVE)))]


def _with_level(power: Power, command: SetLevel) -> Power:
    if (command.person is None) == (command.kind is None):
        raise Refused(Reason.MALFORMED, "a level is of a person or of a kind, one of both")
    if command.person is not None:
        users = {person: level for person, level in power.users.items() if person != command.person}
        if command.level is not None:
            users[command.person] = command.level
        return replace(power, users=users)
    kind = command.kind or ""
    if kind in _NAMED:
        return replace(power, **{kind: command.level})
    events = {name: level for name, level in power.events.items() if name != kind}
    if command.level is not None:
        events[kind] = command.level
    return replace(power, events=events)


_CONTACTS = 4
"""The most relays, and members beside ourselves, in an invitation: more would only make it longer."""


def ticket_of(room: Room, command: MakeTicket) -> TicketMade:
    """Issue a ticket with contacts; raises `Refused` if no one could join by it."""
    view, context = room.view, room.context
    level, needed = view.level_of(context.author), view.levels.invite
    if not room.is_active:
        raise Refused(Reason.NOT_A_MEMBER, "only members invite")
    if level < needed:
        raise Refused(Reason.NO_POWER, f"invite: level {level} is below {needed}")
    if command.person is not None and view.membership(command.person) is Membership.BAN:
        raise Refused(Reason.BANNED, "this person is banned: unban them first")
    nonce = context.rng.randbytes(8)
    ticket = issue_ticket(context.key, context.card, room.id, command.person, command.expires_ms, nonce)
    relays = tuple(Contact(peer, relay.hints) for peer, relay in view.relays())
    ours = Contact(context.peer, room.listens)
    met = room.neighbors.contacts(len(relays) + _CONTACTS)
    members = tuple(each for each in met if each.hints and not view.is_relay(each.peer))
    return TicketMade(ticket, (ours, *relays[:_CONTACTS], *members[:_CONTACTS]), name_of(room))
