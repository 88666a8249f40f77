"""Who may see the control DAG without being a member: whoever could join by it, and nobody else."""

from __future__ import annotations

from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, DeviceId, EventId, TopicId
from linnet.core.reasons import Reason
from linnet.identity.cards import CardCheck
from linnet.rooms.access.control_dag import ControlDag
from linnet.rooms.access.membership_rules import inviter_allowed
from linnet.rooms.access.verdict import Refusal
from linnet.rooms.access.view import View
from linnet.rooms.content import MEMBER, JoinRule, Membership, member_key
from linnet.rooms.ticket import Ticket, check_ticket, check_unexpired


def removal_of(control: ControlDag, person: AuthorId) -> EventId | None:
    """The event by which somebody is no longer in the room, who was and may not have heard of it.

    As a member it would have been shown it, and all that it builds on. Who has left is told that we know.
    """
    view = control.view()
    fact = view.get((MEMBER, member_key(person)))
    if fact is None or view.membership(person) not in (Membership.LEAVE, Membership.BAN):
        return None
    return fact.id if control.follows_a_join(fact.id) else None


def visit_allowed(
    room: TopicId,
    view: View,
    person: AuthorId,
    device: DeviceId,
    ticket: Ticket | None,
    card_check: CardCheck,
    now: float,
) -> Refusal | None:
    """None if this person may see who may do what in the room, with this device, by this ticket.

    A visitor says who it is. Else whoever is banned would get round it by not saying so, and a ticket for
    one person would do for all.
    """
    standing = view.membership(person)
    if standing is Membership.BAN:
        return Refusal(Reason.BANNED, "banned from this room")
    if view.is_revoked(person, device):
        return Refusal(Reason.CARD_REVOKED, "the device was revoked in this room")
    if standing in (Membership.INVITE, Membership.JOIN) or view.join_rule() is not JoinRule.INVITE:
        return None
    if ticket is None:
        return Refusal(Reason.NOT_INVITED, "neither a ticket nor an invitation")
    if ticket.room != room:
        return Refusal(Reason.NOT_INVITED, "the ticket is for another room")
    if ticket.person not in (None, person):
        return Refusal(Reason.NOT_INVITED, "the ticket is for another person")
    try:
        check_ticket(ticket, card_check)
        check_unexpired(ticket, now)
    except RemoteError as error:
        return Refusal(error.reason, error.detail)
    return inviter_allowed(ticket, view, view.levels)
