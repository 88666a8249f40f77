"""Tickets, and invitations as people hand them over.

A ticket is a member's signed permission for its holder, or for one person, to join a room until a time.
A join that carries a ticket is allowed if the state at its control heads has the inviter joined with the
level to invite: Matrix's restricted join, co-signed by the authorising user's own key.

An invitation is one line of text with all that a stranger needs to join: ``li1`` and letters of base32,
as in ids. Base64 would be a sixth shorter on the screen. But base32 survives whatever changes case, is
taken whole by one double click, and in a QR code its capitals cost 5.5 bits each, which makes that code
a sixth smaller, where size decides whether a camera can read it. Inside: two bytes of length, so that a
cut text is told from a mistyped one, the invitation, and a checksum.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from datetime import UTC, datetime
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from linnet.core.errors import BadText, RemoteError
from linnet.core.ids import (
    AuthorId,
    Contact,
    Count,
    Hints,
    PeerId,
    TopicId,
    WireAuthorId,
    WirePeerId,
    WireSignature,
    WireTopicId,
)
from linnet.core.reasons import Reason
from linnet.identity.cards import Card, CardCheck, check_card
from linnet.identity.keys import SigningKey, verify

_TAG = b"linnet/ticket/1"
_LEEWAY_MS = 300_000
"""Milliseconds that our clock may differ from the inviter's."""
_encode = msgspec.msgpack.Encoder().encode


class Ticket(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A member's signed permission to join a room until a time."""

    room: WireTopicId
    card: Card
    """The card of the inviter's device, which signs the ticket."""
    person: WireAuthorId | None
    """The only person who may use it; None: anyone who holds it."""
    expires_ms: Count
    nonce: Annotated[bytes, Meta(min_length=8, max_length=8)]
    sig: WireSignature

    @property
    def inviter(self) -> AuthorId:
        """The member who invites."""
        return self.card.person


def issue_ticket(
    key: SigningKey, card: Card, room: TopicId, person: AuthorId | None, expires_ms: int, nonce: bytes
) -> Ticket:
    """Sign a ticket with this device's key."""
    signed = _signed(room, card, person, expires_ms, nonce)
    return Ticket(room, card, person, expires_ms, nonce, key.sign(signed))


def check_ticket(ticket: Ticket, card_check: CardCheck = check_card) -> None:
    """Raise `RemoteError` unless the inviter's device signed it. Checks neither time nor the room's state."""
    card_check(ticket.card)
    signed = _signed(ticket.room, ticket.card, ticket.person, ticket.expires_ms, ticket.nonce)
    verify(ticket.card.device_key, signed, ticket.sig)


def check_unexpired(ticket: Ticket, now: float) -> None:
    """Raise `RemoteError` if a ticket has expired; for people who show it themselves as they join."""
    if now * 1000 > ticket.expires_ms + _LEEWAY_MS:
        raise RemoteError(Reason.INVITATION_EXPIRED, f"the invitation ended at {ticket.expires_ms // 1000}")


def _signed(room: TopicId, card: Card, person: AuthorId | None, expires_ms: int, nonce: bytes) -> bytes:
    return _TAG + _encode((room, card.person, card.device_key, person, expires_ms, nonce))


PREFIX = "li1"
MAX_CONTACTS = 8
"""The most contacts in one invitation: the first that answers is enough."""

NAME_CHARS = 64
"""The most characters of the room's name in an invitation, which is only a label for the reader."""

_MAX_CHARS = 16_384
_CHECKSUM_BYTES = 4
_LENGTH_BYTES = 2


class Invitation(Struct, frozen=True, gc=False):
    """A ticket, and addresses of members and relays of its room."""

    ticket: Ticket
    contacts: tuple[Contact, ...]
    name: str | None
    """The room's name, according to the inviter."""

    @property
    def room(self) -> TopicId:
        """The room that the invitation is for."""
        return self.ticket.room

    @property
    def text(self) -> str:
        """The line of text to hand over."""
        return invitation_text(self)


class _Place(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    peer: WirePeerId | None
    """None: the device that signed the ticket, which names it already."""
    hints: Hints


class _Inside(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    ticket: Ticket
    places: Annotated[tuple[_Place, ...], Meta(max_length=MAX_CONTACTS)]
    name: Annotated[str, Meta(max_length=NAME_CHARS)] | None


_decode = msgspec.msgpack.Decoder(_Inside).decode


def invitation_text(invitation: Invitation) -> str:
    """Return the line that `parse_invitation` reads, without contacts that have no addresses."""
    own = invitation.ticket.card.device_key
    places = tuple(
        _Place(None if contact.peer == own else contact.peer, contact.hints)
        for contact in invitation.contacts
        if contact.hints
    )
    name = None if invitation.name is None else invitation.name[:NAME_CHARS]
    inside = _encode(_Inside(invitation.ticket, places[:MAX_CONTACTS], name))
    whole = len(inside).to_bytes(_LENGTH_BYTES, "big") + inside
    letters = base64.b32encode(whole + _checksum(whole)).decode()
    return PREFIX + letters.rstrip("=").lower()


def parse_invitation(text: str, now: float | None = None) -> Invitation:
    """Parse an invitation and check its ticket's signature; `BadText` says what is wrong with it.

    Blanks and line ends within are ignored: mail breaks long lines. With `now`, an expired invitation is
    refused too.
    """
    inside = _inside(_whole("".join(text.split())))
    own = PeerId(inside.ticket.card.device_key)
    contacts = tuple(
        Contact(own if place.peer is None else place.peer, place.hints) for place in inside.places
    )
    try:
        check_ticket(inside.ticket)
    except RemoteError as error:
        raise BadText(f"this invitation is not signed by whom it names: {error.detail}") from error
    if now is not None:
        _check_time(inside.ticket, now)
    return Invitation(inside.ticket, contacts, inside.name)


def _whole(text: str) -> bytes:
    """Decode the bytes after the prefix, as many as there are."""
    if not text.lower().startswith(PREFIX):
        raise BadText(f"{_shown(text)} is no invitation: it should begin with {PREFIX}")
    letters = text[len(PREFIX) :]
    if len(letters) > _MAX_CHARS:
        raise BadText(f"{len(letters)} letters are too many for an invitation; copy it again, alone")
    # A number of letters that no whole bytes give means that the text was cut: drop the last bits.
    usable = letters[: len(letters) - (len(letters) % 8 in (1, 3, 6))]
    try:
        # By way of ASCII: `upper` would take a long s for an s.
        return base64.b32decode(usable.encode("ascii") + b"=" * (-len(usable) % 8), casefold=True)
    except (binascii.Error, ValueError) as error:
        raise BadText(
            "this invitation has a character that none has (only a-z and 2-7): mistyped, "
            "or something else was pasted with it; copy it again"
        ) from error


def _inside(whole: bytes) -> _Inside:
    size = int.from_bytes(whole[:_LENGTH_BYTES], "big")
    expected = _LENGTH_BYTES + size + _CHECKSUM_BYTES
    if len(whole) < expected:
        raise BadText(
            f"this invitation is cut short: {len(whole)} of {expected} bytes are there; copy it again, whole"
        )
    if len(whole) > expected:
        raise BadText("this invitation has letters too many at its end; copy it again, alone")
    if _checksum(whole[:-_CHECKSUM_BYTES]) != whole[-_CHECKSUM_BYTES:]:
        raise BadText("this invitation fails its checksum: a letter is wrong; copy it again")
    try:
        return _decode(whole[_LENGTH_BYTES:-_CHECKSUM_BYTES])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadText(f"this invitation is of a newer Linnet, or of none: {error}") from error


def _check_time(ticket: Ticket, now: float) -> None:
    try:
        check_unexpired(ticket, now)
    except RemoteError as error:
        ended = datetime.fromtimestamp(ticket.expires_ms // 1000, UTC)  # in the past: a calendar has it
        raise BadText(
            f"this invitation ended on {ended:%Y-%m-%d at %H:%M} UTC; ask its sender for a new one"
        ) from error


def _checksum(whole: bytes) -> bytes:
    return hashlib.sha256(PREFIX.encode() + whole).digest()[:_CHECKSUM_BYTES]


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "…")
