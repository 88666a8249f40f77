"""Joins a room: fetches its control DAG from the first contact that answers, then publishes our own join.

All contacts are asked at once, members and relays alike; the pages of the first that answers are taken.
The command is answered once a peer shows that our join is in the room.
"""

from __future__ import annotations

from collections.abc import Callable

from linnet.core.errors import InvalidEvent, Refused, RemoteError
from linnet.core.ids import Contact, EventId, PeerId, TopicId
from linnet.core.inputs import LinkDown, LinkUp
from linnet.core.reasons import Reason
from linnet.event.event import Verified
from linnet.identity.cards import Card
from linnet.machine.commands import Declined
from linnet.machine.outbox import Outbox
from linnet.machine.part import Part, on_command, on_input, on_timer
from linnet.rooms.commands import JoinRoom, RoomMade
from linnet.rooms.event_types import Membership
from linnet.rooms.messages import AskControl, ControlPage, Greet, RelayTaken, RoomTimer, RoomTopicMessage
from linnet.rooms.messages import Refused as RefusedMessage
from linnet.rooms.room import Room, RoomRegistry
from linnet.rooms.room_status import CALLED
from linnet.trace.records import Kind, Record

_NOTHING = EventId(bytes(32))
"""The event id in the answer to a join that made no event."""

_AGAIN = 3.0
"""Seconds without an answer after which all contacts are asked again."""


class JoinEndDue(RoomTimer, frozen=True, gc=False):
    """Timer: the patience of a command to join a room has run out."""


class JoinRepeatDue(RoomTimer, frozen=True, gc=False):
    """Timer: no contact has answered for a while in an attempt to join a room."""


class Join:
    """One attempt to join a room."""

    def __init__(
        self, request: int, command: JoinRoom, contacts: tuple[Contact, ...], card: Card, out: Outbox
    ) -> None:
        """`contacts` are the contacts of the command that this node may dial."""
        self.room = command.room
        self._card = card
        self._out = out
        self.request = request
        """The id of the command to answer."""
        self.ticket = command.ticket
        self.knock = command.knock
        self.contacts = {contact.peer: contact for contact in contacts}
        self.answering: PeerId | None = None
        """The contact whose pages are taken; None if none has answered."""
        self.heads: tuple[EventId, ...] = ()
        """The heads of the control events that this contact has shown."""
        self.joined: EventId | None = None
        """Our join, once it is published; the attempt then waits for a peer that accepts it."""
        self.opened = False
        """Whether this attempt opened the room here."""
        self.returns = False
        """Whether we had left the room, and it is still here only to tell others about the leave."""
        self.last_reason: Reason | None = None
        """The last reason why a contact did not show the room: the answer if none does."""
        self._asked = 0

    def begin(self, links: dict[PeerId, None], patience: float) -> None:
        """Dial all contacts at once."""
        for contact in self.contacts.values():
            self._out.hold(contact.peer, contact.hints, self._purpose)
        for peer in self.contacts:
            if peer in links:
                self.handle_link_up(peer)
        self._out.set_timer(patience, JoinEndDue(self.room))

    def handle_link_up(self, peer: PeerId) -> None:
        """Ask a contact for the room's control events, now that its link is open."""
        if peer in self.contacts and self.joined is None:
            self.ask_page(peer, ())

    def ask_again(self, links: dict[PeerId, None]) -> None:
        """Ask all linked contacts again: a request or an answer may be lost."""
        if self.joined is not None:
            self._out.set_timer(_AGAIN, JoinRepeatDue(self.room))
            return
        self.answering = None
        for peer in self.contacts:
            if peer in links:
                self.handle_link_up(peer)

    def handle_link_down(self, peer: PeerId) -> None:
        """Let another contact answer instead of one that is gone."""
        if self.answering == peer and self.joined is None:
            self.answering = None

    def wants(self, peer: PeerId, page: ControlPage) -> bool:
        """Return whether this attempt takes a page; note the reason in a page without events."""
        if peer not in self.contacts or self.joined is not None:
            return False
        if page.reason is not None:
            self.last_reason = page.reason
            return False
        if self.answering is None:
            self.answering = peer
        return self.answering == peer

    def is_taken(self, page: ControlPage) -> bool:
        """Return whether a page shows that our join or knock is in the room."""
        return self.joined is not None and self.joined in page.heads

    def is_refused(self, peer: PeerId, event: EventId | None) -> bool:
        """Return whether the contact that showed us the room refuses our join; others may only be behind."""
        return event is not None and event == self.joined and peer == self.answering

    def ask_page(self, peer: PeerId, heads: tuple[EventId, ...]) -> None:
        """Ask a contact for the control events beyond these heads."""
        self._asked += 1
        self._out.send(peer, AskControl(self.room, self._asked, heads, self.ticket, self._card))
        self._out.set_timer(_AGAIN, JoinRepeatDue(self.room))

    def end(self) -> None:
        """Release all contacts: the attempt is over."""
        self._out.cancel_timer(JoinEndDue(self.room))
        self._out.cancel_timer(JoinRepeatDue(self.room))
        for peer in self.contacts:
            self._out.release(peer, self._purpose)

    @property
    def _purpose(self) -> str:
        return f"join/{self.room.hex()}"


class Joins(Part):
    """Runs the node's attempts to join rooms: handles their commands and the answers of contacts."""

    def __init__(self, registry: RoomRegistry, is_served: Callable[[TopicId], bool]) -> None:
        """`is_served` says whether this node serves a room as a relay."""
        self._registry = registry
        self._is_served = is_served
        self._context = registry.setting.context
        self._out = registry.setting.out
        self.by_room: dict[TopicId, Join] = {}

    def stop(self, now: float) -> None:
        """Decline every unfinished join: the node stops."""
        for joining in list(self.by_room.values()):
            self.end_join(joining, Declined(Reason.SHUTDOWN, "the node stops"), now)

    @on_input(LinkUp)
    def handle_link_up(self, event: LinkUp, now: float) -> None:
        """Ask a contact for its rooms, now that its link is open."""
        for joining in self.by_room.values():
            joining.handle_link_up(event.peer)

    @on_input(LinkDown)
    def handle_link_down(self, event: LinkDown, now: float) -> None:
        """Let another contact answer instead of one that is gone."""
        for joining in self.by_room.values():
            joining.handle_link_down(event.peer)

    @on_command(JoinRoom)
    def join_room(self, request: int, command: JoinRoom, now: float) -> None:
        """Join a room; if this node is in it already, try the addresses in the invitation."""
        if self._is_served(command.room):
            raise Refused(Reason.IN_USE, "this node is a relay of that room")
        known = self._registry.find(command.room)
        if known is not None and known.is_active:
            self._try_contacts(request, known, command, now)
            return
        if command.room in self.by_room:
            raise Refused(Reason.IN_USE, "this node is joining the room already")
        others = [each for each in command.contacts if each.peer != self._context.peer]
        if not others:
            raise Refused(Reason.NO_ADDRESS, "nobody to ask: an invitation names other members, or relays")
        contacts = tuple(each for each in others if not self._registry.setting.is_out_of_reach(each.peer))
        if not contacts:
            detail = (
                "beyond local networks this node has links to its proxies alone: join by an invitation that "
                "names one as a relay"
            )
            raise Refused(Reason.NO_ADDRESS, detail)
        joining = Join(request, command, contacts, self._context.card, self._out)
        joining.returns = known is None and command.room in self._registry.by_id
        self.by_room[command.room] = joining
        if command.called is not None:
            self._context.store.cells.put(CALLED, command.room, command.called.encode())
        joining.begin(self._context.links, command.patience)

    def _try_contacts(self, request: int, room: Room, command: JoinRoom, now: float) -> None:
        """Dial the members and relays in an invitation to a room that we are in already."""
        contacts = tuple(
            each
            for each in command.contacts
            if each.hints
            and each.peer != self._context.peer
            and not self._registry.setting.is_out_of_reach(each.peer)
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

    def say_join(self, joining: Join, room: Room, now: float) -> None:
        """Publish our join or knock, now that we know the room's rules."""
        room.memory.departed_at = None
        membership = Membership.KNOCK if joining.knock else Membership.JOIN
        made, declined = room.passing.say(room.membership_drafts(membership, joining.ticket), now)
        if declined is not None:
            self.end_join(joining, declined, now)
            room.settle(now)
            return
        joining.joined = made[0].head
        room.introduce(joining.answering, joining.heads, now)
        room.settle(now)
        joining.ask_again(self._context.links)

    @on_timer(JoinRepeatDue)
    def repeat_join(self, timer: JoinRepeatDue, now: float) -> None:
        """Ask all contacts again for the room, or show them our join again."""
        joining = self.by_room.get(timer.room)
        if joining is None:
            return
        joining.ask_again(self._context.links)
        room = self._registry.get(joining.room)
        if joining.joined is None or room is None:
            return
        for peer in joining.contacts:  # The contact that showed us the room may be unable to admit us.
            if peer in self._context.links:
                room.introduce_again(peer, joining.heads, now)
        room.settle(now)

    @on_timer(JoinEndDue)
    def give_up_join(self, timer: JoinEndDue, now: float) -> None:
        """Decline a join whose patience has run out."""
        joining = self.by_room.get(timer.room)
        if joining is None:
            return
        reason = joining.last_reason or Reason.TIMEOUT
        detail = "nobody who was asked has shown the room" if reason is Reason.TIMEOUT else "refused"
        if joining.joined is not None:
            reason, detail = Reason.TIMEOUT, "nobody has said that our join is in the room"
        self.end_join(joining, Declined(reason, detail), now)

    def end_join(self, joining: Join, result: Declined | None, now: float) -> None:
        """End an attempt and reply to its command: a peer has accepted the join, or it is declined."""
        self.by_room.pop(joining.room, None)
        room = self._registry.get(joining.room)
        if room is not None:
            room.taking.asked.clear()
        if result is None and room is not None:
            self._stay_with_contacts(joining, room, now)
        joining.end()
        if result is not None and room is not None:
            room.leave(now)
            # Even if nobody has answered, some peer may have received our join.
            is_refused = result.reason not in (Reason.TIMEOUT, Reason.SHUTDOWN)
            if joining.returns or (joining.opened and not is_refused):
                self._registry.depart(room, now)
            elif joining.opened:
                self._registry.forget(room, now)
        self._out.committed.reply(
            joining.request, result or RoomMade(joining.room, joining.joined or _NOTHING)
        )

    def _stay_with_contacts(self, joining: Join, room: Room, now: float) -> None:
        """Keep the links to the members that were asked, whichever contact has answered first."""
        room.neighbors.add(joining.contacts.values(), now)
        for peer in joining.contacts:
            if peer in self._context.links and not room.view.is_relay(peer):
                room.handle_link_up(peer, now)
                room.settle(now)

    def handle_answer(self, joining: Join, peer: PeerId, message: RoomTopicMessage, now: float) -> bool:
        """Take an answer that a join waits for; return False if the message is something else."""
        match message:
            case ControlPage() if joining.joined is None:
                self._take_page(joining, peer, message, now)
            case ControlPage() if joining.is_taken(message):
                self.end_join(joining, None, now)
            case RefusedMessage(_, event, reason, detail) if joining.is_refused(peer, event):
                self.end_join(joining, Declined(reason, detail), now)
            case Greet() if joining.joined is not None and peer in joining.contacts:
                room = self._registry.get(joining.room)
                if room is not None:
                    room.handle_greet(peer, message, now)
                    room.settle(now)
                self.end_join(joining, None, now)
            case RelayTaken() if joining.joined is not None:
                self._take_outcome(joining, peer, message, now)
            case _:
                return False
        return True

    def _take_outcome(self, joining: Join, peer: PeerId, message: RelayTaken, now: float) -> None:
        """End the attempt if a relay keeps our join, or refuses it."""
        taken = [each for each in message.outcomes if each.event == joining.joined]
        refused = [each.reason for each in taken if each.cursor is None and not each.missing]
        room = self._registry.get(joining.room)
        if room is not None:
            room.relays.handle_taken(peer, message, now)
            room.settle(now)
        if taken and taken[0].cursor is not None:
            self.end_join(joining, None, now)
        elif refused and peer == joining.answering:
            declined = Declined(refused[0] or Reason.UNKNOWN, "the relay does not take our join")
            self.end_join(joining, declined, now)

    def _take_page(self, joining: Join, peer: PeerId, page: ControlPage, now: float) -> None:
        if not joining.wants(peer, page):
            reason = page.reason
            self._out.record(Record(Kind.REJECTED, joining.room, peer=peer, reason=reason, note="page"))
            return
        room = self._registry.get(joining.room)
        units = page.units
        if room is None:
            try:
                room = self._registry.open(self._first(joining, page), newcomer=True, now=now)
                joining.opened = True
            except RemoteError as error:
                joining.answering = None
                joining.last_reason = error.reason
                note = error.detail[:100]
                self._out.record(
                    Record(Kind.REJECTED, joining.room, peer=peer, reason=error.reason, note=note)
                )
                return
            units = units[1:]
        room.taking.asked[peer] = None
        room.taking.take(units, page.cards, peer, now)
        room.settle(now)
        if page.more and page.units:
            joining.ask_page(peer, room.backfill_client.next_heads(peer, page, room.control.heads))
            return
        room.backfill_client.forget_pages(peer)
        joining.heads = page.heads
        self.say_join(joining, room, now)

    def _first(self, joining: Join, page: ControlPage) -> Verified:
        """Verify the create event, whose id is the room's; raises `RemoteError` if the page lacks it."""
        for given in page.cards:
            self._context.cards.learn(given)
        if not page.units:
            raise InvalidEvent(Reason.MALFORMED, "a page without events")
        unit = page.units[0]
        card = self._context.cards.find(unit.author, unit.device)
        if card is None:
            raise InvalidEvent(Reason.UNKNOWN_DEVICE, "no card came with the create event")
        verified = self._context.verify(unit, card)
        if bytes(verified.head) != joining.room:
            raise InvalidEvent(Reason.MALFORMED, "the first event of a room is the one its id names")
        return verified
