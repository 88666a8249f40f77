"""Place addresses: one line of text with all that a stranger needs to enter a place.

``la1`` followed by base32 letters, as in ids and invitations. Inside: two bytes of length, so that a cut text
can be told from a mistyped one, the address, and a checksum. Nothing in it is secret or signed: the place's
id is its key, and a node that answers at a contact must prove with a deed that it speaks for the place.
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
"""The number of contacts to ask; the first that answers is enough."""
NAME_CHARS = 64
"""Characters of the place's name; it only tells the reader what this is."""

_MAX_CHARS = 16_384
_LENGTH_BYTES = 2
_CHECKSUM_BYTES = 4


class PlaceAddress(Struct, frozen=True, gc=False):
    """A place, and where its host and relays can be dialled."""

    place: TopicId
    contacts: tuple[Contact, ...]
    name: str | None = None
    """The name of the place, as the maker of the address wrote it."""

    @property
    def text(self) -> str:
        """The address as text, for `parse_address`; without contacts nobody can dial the place."""
        contacts = tuple(contact for contact in self.contacts if contact.hints)[:MAX_CONTACTS]
        name = None if self.name is None else self.name[:NAME_CHARS]
        inside = _encode(_Inside(self.place, contacts, name))
        whole = len(inside).to_bytes(_LENGTH_BYTES, "big") + inside
        return PREFIX + base64.b32encode(whole + _checksum(whole)).decode().rstrip("=").lower()


class _Inside(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    place: WireTopicId
    contacts: Annotated[tuple[Contact, ...], Meta(max_length=MAX_CONTACTS)]
    name: Annotated[str, Meta(max_length=NAME_CHARS)] | None


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Inside).decode


def is_address(text: str) -> bool:
    """Return whether the text is an address, or a mistyped one."""
    return text.strip().lower().startswith(PREFIX)


def parse_address(text: str) -> PlaceAddress:
    """Return the address in a text; `BadText` says what is wrong with it. Blanks and line ends do no harm."""
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
    # A number of letters that no bytes encode to was cut: the last bits are dropped.
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
