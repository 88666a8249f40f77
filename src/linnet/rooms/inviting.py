"""Invitations: a ticket of ours, and where members and relays of the room may be dialled."""

from __future__ import annotations

from linnet.core.errors import Refused
from linnet.core.ids import Contact
from linnet.core.reasons import Reason
from linnet.rooms.commands import MakeTicket
from linnet.rooms.content import Membership
from linnet.rooms.results import TicketMade
from linnet.rooms.room import Room
from linnet.rooms.status import name_of
from linnet.rooms.ticket import issue_ticket

_CONTACTS = 4
"""Relays, and members beside ourselves, that an invitation names: more would only make it longer."""


def ticket_of(room: Room, command: MakeTicket) -> TicketMade:
    """An invitation to hand over; `Refused` if nobody could join by it."""
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
    ours = Contact(context.peer, room.parts.listens)
    met = room.neighbors.contacts(len(relays) + _CONTACTS)
    members = tuple(each for each in met if each.hints and not view.is_relay(each.peer))
    return TicketMade(ticket, (ours, *relays[:_CONTACTS], *members[:_CONTACTS]), name_of(room))
