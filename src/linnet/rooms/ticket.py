"""Tickets: a member's signed word that whoever holds it, or one person, may join a room until a time.

A join that carries a ticket is allowed if the state at its control heads has the inviter joined with the
level to invite: Matrix's restricted join, co-signed by the authorising user's own key.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, Count, TopicId, WireAuthorId, WireSignature, WireTopicId
from linnet.core.reasons import Reason
from linnet.identity.cards import Card, CardCheck, check_card
from linnet.identity.keys import SigningKey, verify

_TAG = b"linnet/ticket/1"
_encode = msgspec.msgpack.Encoder().encode


class Ticket(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """Who may join which room, until when, by whose word."""

    room: WireTopicId
    card: Card
    """The device that signs, and whose it is."""
    person: WireAuthorId | None
    """The one who may use it; None: whoever holds it."""
    expires_ms: Count
    nonce: Annotated[bytes, Meta(min_length=8, max_length=8)]
    sig: WireSignature

    @property
    def inviter(self) -> AuthorId:
        """The member whose word it is."""
        return self.card.person


def issue_ticket(
    key: SigningKey, card: Card, room: TopicId, person: AuthorId | None, expires_ms: int, nonce: bytes
) -> Ticket:
    """A ticket of this device."""
    signed = _signed(room, card, person, expires_ms, nonce)
    return Ticket(room, card, person, expires_ms, nonce, key.sign(signed))


def check_ticket(ticket: Ticket, card_check: CardCheck = check_card) -> None:
    """Raise `RemoteError` unless the inviter's device signed it. Says nothing of time or the room's state."""
    card_check(ticket.card)
    signed = _signed(ticket.room, ticket.card, ticket.person, ticket.expires_ms, ticket.nonce)
    verify(ticket.card.device_key, signed, ticket.sig)


def check_unexpired(ticket: Ticket, now: float, leeway: float = 300.0) -> None:
    """Raise `RemoteError` if its time has passed: asked at the door, of those who come themselves."""
    if now * 1000 > ticket.expires_ms + leeway * 1000:
        raise RemoteError(Reason.INVITATION_EXPIRED, f"the invitation ended at {ticket.expires_ms // 1000}")


def _signed(room: TopicId, card: Card, person: AuthorId | None, expires_ms: int, nonce: bytes) -> bytes:
    return _TAG + _encode((room, card.person, card.device_key, person, expires_ms, nonce))
