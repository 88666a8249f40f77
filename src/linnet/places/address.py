"""Addresses of places as people hand them over: one line of text with all that a stranger needs to enter.

``la1`` and letters of base32, as in ids and invitations. Inside: two bytes of length, so that a cut text is
told from a mistyped one, the address, and a checksum. Nothing of it is secret, and nothing is signed: the
place's id is its key, and whoever answers at a contact has to prove with a deed that it speaks for it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from linnet.core.errors import BadText
from linnet.core.ids import Contact, TopicId, WireTopicId

PREFIX = "la1"
MAX_CONTACTS = 8
"""Where to ask; the first that answers is enough."""
NAME_CHARS = 64
"""Characters of the place's name; it only tells the reader what this is."""

_MAX_CHARS = 16_384
_LENGTH_BYTES = 2
_CHECKSUM_BYTES = 4


class PlaceAddress(Struct, frozen=True, gc=False):
    """A place, and where its host and relays may be dialled."""

    place: TopicId
    contacts: tuple[Contact, ...]
    name: str | None = None
    """What the place is called, as whoever made the address says."""

    @property
    def text(self) -> str:
        """The line that is handed over."""
        return address_text(self)


class _Inside(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    place: WireTopicId
    contacts: Annotated[tuple[Contact, ...], Meta(max_length=MAX_CONTACTS)]
    name: Annotated[str, Meta(max_length=NAME_CHARS)] | None


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Inside).decode


def is_address(text: str) -> bool:
    """Whether this is an address, or a mistyped one."""
    return text.strip().lower().startswith(PREFIX)


def address_text(address: PlaceAddress) -> str:
    """One line that `parse_address` reads. Contacts that nobody can dial are left out."""
    contacts = tuple(contact for contact in address.contacts if contact.hints)[:MAX_CONTACTS]
    name = None if address.name is None else address.name[:NAME_CHARS]
    inside = _encode(_Inside(address.place, contacts, name))
    whole = len(inside).to_bytes(_LENGTH_BYTES, "big") + inside
    return PREFIX + base64.b32encode(whole + _checksum(whole)).decode().rstrip("=").lower()


def parse_address(text: str) -> PlaceAddress:
    """The address in a text; `BadText` says what is wrong with it. Blanks and line ends do no harm."""
    letters = "".join(text.split())
    if not is_address(letters):
        shown = repr(letters if len(letters) <= 40 else letters[:40] + "…")
        raise BadText(f"{shown} is no address of a place: it should begin with {PREFIX}")
    whole = _bytes(letters[len(PREFIX) :])
    expected = _LENGTH_BYTES + int.from_bytes(whole[:_LENGTH_BYTES], "big") + _CHECKSUM_BYTES
    if len(whole) < expected:
        raise BadText(f"this address is cut short: {len(whole)} of {expected} bytes; copy it again, whole")
    if len(whole) > expected:
        raise BadText("this address has letters too many at its end; copy it again, alone")
    if _checksum(whole[:-_CHECKSUM_BYTES]) != whole[-_CHECKSUM_BYTES:]:
        raise BadText("this address fails its checksum: a letter is wrong; copy it again")
    try:
        inside = _decode(whole[_LENGTH_BYTES:-_CHECKSUM_BYTES])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadText(f"this address is of a newer Linnet, or of none: {error}") from error
    return PlaceAddress(inside.place, inside.contacts, inside.name)


def _bytes(letters: str) -> bytes:
    if len(letters) > _MAX_CHARS:
        raise BadText(f"{len(letters)} letters are too many for an address; copy it again, alone")
    # A number of letters that no bytes give is one that was cut: the last bits are let go.
    usable = letters[: len(letters) - (len(letters) % 8 in (1, 3, 6))]
    try:
        return base64.b32decode(usable.encode("ascii") + b"=" * (-len(usable) % 8), casefold=True)
    except (binascii.Error, ValueError) as error:
        raise BadText(
            "this address has a character that none has (only a-z and 2-7): mistyped, "
            "or something else was pasted with it; copy it again"
        ) from error


def _checksum(whole: bytes) -> bytes:
    return hashlib.sha256(PREFIX.encode() + whole).digest()[:_CHECKSUM_BYTES]
