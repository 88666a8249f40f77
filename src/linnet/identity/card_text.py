"""A card as one line of text, to be carried from a device that holds the person's key to one that does not.

``lc1``, then base32 of the card and a checksum of 24 bits. It is no secret: a card is shown to everybody.
"""

from __future__ import annotations

import base64
import binascii
import hashlib

from msgspec import DecodeError, msgpack

from linnet.core.errors import BadText
from linnet.identity.cards import Card

PREFIX = "lc1"
_CHECKSUM_BYTES = 3
_MOST = 1024
_decoder = msgpack.Decoder(Card)


def card_to_text(card: Card) -> str:
    """The line."""
    payload = msgpack.encode(card)
    letters = base64.b32encode(payload + _checksum(payload)).decode()
    return PREFIX + letters.rstrip("=").lower()


def card_from_text(text: str) -> Card:
    """The card of a line; `BadText` says what is wrong. Whether the person signed it is not asked here."""
    joined = "".join(text.split())
    if not joined.lower().startswith(PREFIX):
        raise BadText(f"a card begins with {PREFIX}; linnet id link prints one")
    letters = joined[len(PREFIX) :]
    if len(letters) > _MOST:
        raise BadText("this is longer than any card; copy the line again")
    try:
        decoded = base64.b32decode(letters.encode("ascii") + b"=" * (-len(letters) % 8), casefold=True)
    except (binascii.Error, ValueError) as error:
        raise BadText(
            "this card has a character that no card has, or an end is missing; copy it again"
        ) from error
    payload = decoded[:-_CHECKSUM_BYTES]
    if _checksum(payload) != decoded[-_CHECKSUM_BYTES:]:
        raise BadText("this card fails its checksum: a letter is wrong or missing; copy it again, whole")
    try:
        return _decoder.decode(payload)
    except DecodeError as error:
        raise BadText(f"this is no card: {error}") from error


def _checksum(payload: bytes) -> bytes:
    return hashlib.sha256(PREFIX.encode() + payload).digest()[:_CHECKSUM_BYTES]
