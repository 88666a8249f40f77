"""Invitations as people hand them over: one line of text with all that a stranger needs to join.

``li1`` and letters of base32, as in ids. Base64 would be a sixth shorter on the screen. But base32
survives whatever changes case, is taken whole by one double click, and in a QR code its capitals cost
5.5 bits each, which makes that code a sixth smaller, where size decides whether a camera can read it.
Inside: two bytes of length, so that a cut text is told from a mistyped one, the invitation, and a
checksum.
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
from linnet.core.ids import Contact, Hints, PeerId, TopicId, WirePeerId
from linnet.rooms.ticket import Ticket, check_ticket, check_unexpired

PREFIX = "li1"
MAX_CONTACTS = 8
"""Places to ask that one invitation names: the first that answers is enough."""

NAME_CHARS = 64
"""Characters of the room's name in an invitation; it only tells the reader what this is."""

_MAX_CHARS = 16_384
_CHECKSUM_BYTES = 4
_LENGTH_BYTES = 2
_encode = msgspec.msgpack.Encoder().encode


class Invitation(Struct, frozen=True, gc=False):
    """A ticket, and where members and relays of its room may be dialled."""

    ticket: Ticket
    contacts: tuple[Contact, ...]
    name: str | None
    """What the room is called, as its inviter says."""

    @property
    def room(self) -> TopicId:
        """The room."""
        return self.ticket.room

    @property
    def text(self) -> str:
        """The line that is handed over."""
        return invitation_text(self)


class _Place(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    peer: WirePeerId | None
    """None: the device that signed the ticket, which it names already."""
    hints: Hints


class _Inside(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    ticket: Ticket
    places: Annotated[tuple[_Place, ...], Meta(max_length=MAX_CONTACTS)]
    name: Annotated[str, Meta(max_length=NAME_CHARS)] | None


_decode = msgspec.msgpack.Decoder(_Inside).decode


def invitation_text(invitation: Invitation) -> str:
    """One line that `parse_invitation` reads. Contacts that nobody can dial are left out."""
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
    """The invitation in a text, its ticket's signature checked; `BadText` says what is wrong with it.

    Blanks and line ends within are passed over: mail breaks long lines. With `now`, one whose time has
    passed is refused too.
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
    """The bytes behind the prefix, as many as there are."""
    if not text.lower().startswith(PREFIX):
        raise BadText(f"{_shown(text)} is no invitation: it should begin with {PREFIX}")
    letters = text[len(PREFIX) :]
    if len(letters) > _MAX_CHARS:
        raise BadText(f"{len(letters)} letters are too many for an invitation; copy it again, alone")
    # A number of letters that no bytes give is one that was cut: the last bits are let go.
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
        ended = datetime.fromtimestamp(ticket.expires_ms // 1000, UTC)
        raise BadText(
            f"this invitation ended on {ended:%Y-%m-%d at %H:%M} UTC; ask its sender for a new one"
        ) from error


def _checksum(whole: bytes) -> bytes:
    return hashlib.sha256(PREFIX.encode() + whole).digest()[:_CHECKSUM_BYTES]


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "…")
