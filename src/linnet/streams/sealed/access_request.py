"""Requests to read a sealed stream: one line of text, handed to the owner over any channel.

``lr1`` and letters of base32, as in ids. Inside: two bytes of length, so that a cut line can be told from a
mistyped one; the stream, the device's card and its prekeys, signed by the device; a checksum. It holds no
secret. The owner decides who may read: the signature proves that the line comes from the device that its
card names, but not that the card's person is the one the owner means.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from linnet.core.errors import BadText, RemoteError
from linnet.core.ids import TopicId, WireSignature, WireTopicId
from linnet.groups.labels import Device, fields
from linnet.groups.prekeys import Bundle, decode_bundle, encode_bundle
from linnet.identity.cards import Card, CardCheck, check_card, check_dates
from linnet.identity.keys import SigningKey, verify
from linnet.streams.sealed.stream_keys import REQUEST_LABEL

PREFIX = "lr1"
_MAX_CHARS = 4_096
_BUNDLE_BYTES = 1_024
_LENGTH_BYTES, _CHECKSUM_BYTES = 2, 4
_encode = msgspec.msgpack.Encoder().encode


class Request(Struct, frozen=True):
    """A device's request to read a stream, with the keys to begin a channel to it."""

    topic: TopicId
    card: Card
    bundle: Bundle

    @property
    def reader(self) -> Device:
        """The device that asks."""
        return Device(self.card.person, self.card.device)


class _Inside(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    topic: WireTopicId
    card: Card
    bundle: Annotated[bytes, Meta(max_length=_BUNDLE_BYTES)]
    sig: WireSignature


_decode = msgspec.msgpack.Decoder(_Inside).decode


def request_text(topic: TopicId, card: Card, bundle: Bundle, key: SigningKey) -> str:
    """Return the line by which a device asks to read a stream."""
    told = encode_bundle(bundle)
    inside = _encode(_Inside(topic, card, told, key.sign(_signed(topic, card, told))))
    whole = len(inside).to_bytes(_LENGTH_BYTES, "big") + inside
    return PREFIX + base64.b32encode(whole + _checksum(whole)).decode().rstrip("=").lower()


def parse_request(text: str, now: float, check: CardCheck = check_card) -> Request:
    """Parse a request and check its signatures and dates; raises `BadText` if it is wrong.

    Blanks and line ends within it are skipped, since mail breaks long lines.
    """
    inside = _inside(_whole("".join(text.split())))
    try:
        check(inside.card)
        check_dates(inside.card, now)
        verify(inside.card.device_key, _signed(inside.topic, inside.card, inside.bundle), inside.sig)
        bundle = decode_bundle(inside.bundle)
    except RemoteError as error:
        raise BadText(f"this request cannot be taken: {error.detail}; ask for a new one") from error
    return Request(inside.topic, inside.card, bundle)


def _signed(topic: TopicId, card: Card, bundle: bytes) -> bytes:
    return fields(REQUEST_LABEL, topic, _encode(card), bundle)


def _whole(text: str) -> bytes:
    if not text.lower().startswith(PREFIX):
        shown = repr(text if len(text) <= 40 else text[:40] + "…")
        raise BadText(f"{shown} is no request to read a stream: it should begin with {PREFIX}")
    letters = text[len(PREFIX) :]
    if len(letters) > _MAX_CHARS:
        raise BadText(f"{len(letters)} letters are too many for a request; copy it again, alone")
    # If no bytes can give this number of letters, the line was cut: drop the last bits.
    usable = letters[: len(letters) - (len(letters) % 8 in (1, 3, 6))]
    try:
        return base64.b32decode(usable.encode("ascii") + b"=" * (-len(usable) % 8), casefold=True)
    except (binascii.Error, ValueError) as error:
        raise BadText("this request has a letter that none has (only a-z and 2-7); copy it again") from error


def _inside(whole: bytes) -> _Inside:
    expected = _LENGTH_BYTES + int.from_bytes(whole[:_LENGTH_BYTES], "big") + _CHECKSUM_BYTES
    if len(whole) < expected:
        raise BadText(f"this request is cut short: {len(whole)} of {expected} bytes are there; copy it whole")
    if len(whole) > expected:
        raise BadText("this request has letters too many at its end; copy it again, alone")
    if _checksum(whole[:-_CHECKSUM_BYTES]) != whole[-_CHECKSUM_BYTES:]:
        raise BadText("this request fails its checksum: a letter is wrong; copy it again")
    try:
        return _decode(whole[_LENGTH_BYTES:-_CHECKSUM_BYTES])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadText(f"this request is of a newer Linnet, or of none: {error}") from error


def _checksum(whole: bytes) -> bytes:
    return hashlib.sha256(PREFIX.encode() + whole).digest()[:_CHECKSUM_BYTES]
