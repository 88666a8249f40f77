"""What an event must prove by signatures, whatever the state: tickets and revocations."""

from __future__ import annotations

from linnet.core.errors import RemoteError
from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.identity.cards import CardCheck, check_card, check_revocation
from linnet.rooms.access.facts import Fact
from linnet.rooms.access.verdict import Refusal
from linnet.rooms.content import Member, Membership, Revoked
from linnet.rooms.ticket import Ticket, check_ticket


def proven(fact: Fact, room: TopicId, card_check: CardCheck = check_card) -> Refusal | None:
    """None if all that the event claims by signature is so; asked once for each event."""
    content = fact.content
    if isinstance(content, Revoked):
        return _revocation_proven(fact, content)
    if isinstance(content, Member) and content.ticket is not None:
        if content.membership is not Membership.JOIN:
            return Refusal(Reason.MALFORMED, "member: a ticket is for a join")
        return _ticket_proven(fact, content.ticket, room, card_check)
    return None


def _revocation_proven(fact: Fact, content: Revoked) -> Refusal | None:
    if content.revocation.person != fact.sender:
        return Refusal(Reason.NOT_ALLOWED, "revocation: of another person's device")
    try:
        check_revocation(content.revocation)
    except RemoteError as error:
        return Refusal(error.reason, f"revocation: {error.detail}")
    return None


def _ticket_proven(fact: Fact, ticket: Ticket, room: TopicId, card_check: CardCheck) -> Refusal | None:
    if ticket.room != room:
        return Refusal(Reason.NOT_INVITED, "join: the ticket is for another room")
    if ticket.person is not None and ticket.person != fact.sender:
        return Refusal(Reason.NOT_INVITED, "join: the ticket is for another person")
    if fact.time > ticket.expires_ms:
        return Refusal(Reason.INVITATION_EXPIRED, f"join: at {fact.time}, after {ticket.expires_ms}")
    try:
        check_ticket(ticket, card_check)
    except RemoteError as error:
        return Refusal(error.reason, f"join: the ticket: {error.detail}")
    return None
