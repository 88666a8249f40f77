"""Device cards: a person's signed word that a device key is theirs, for a time.

The person key signs cards and revocations only and may stay offline; device keys sign events and
open links (docs/design/identity.md). As one line of text a card is carried from a device that holds the
person's key to one that does not: ``lc1``, then base32 of the card and a checksum of 24 bits. It is no
secret, for a card is shown to everybody.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable
from typing import Annotated

from msgspec import DecodeError, Meta, Struct, msgpack

from linnet.core.errors import BadText, RemoteError
from linnet.core.ids import (
    AuthorId,
    Count,
    DeviceId,
    PeerId,
    WireAuthorId,
    WireDeviceId,
    WirePeerId,
    WireSignature,
)
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey, device_id, verify

CardCheck = Callable[["Card"], None]
"""`check_card`, or in a simulation the same with its results remembered."""

CARD_DAYS = 365
"""How long a card is good for by default: long enough to forget, short enough to matter."""

LABEL_CHARS = 64

_CARD_TAG = b"linnet/card/1"
_REVOCATION_TAG = b"linnet/revocation/1"
_encoder = msgpack.Encoder()


class Card(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """This device belongs to this person, from a second to a second of Unix time."""

    person: WireAuthorId
    device_key: WirePeerId
    not_before: Count
    not_after: Count
    label: Annotated[str, Meta(max_length=LABEL_CHARS)]
    sig: WireSignature

    @property
    def device(self) -> DeviceId:
        """The device's short name."""
        return device_id(self.device_key)


class Revocation(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """From its receipt on, nothing new of this device is the person's."""

    person: WireAuthorId
    device: WireDeviceId
    at: Count
    sig: WireSignature


def issue_card(
    person: SigningKey, device_key: bytes, not_before: int, not_after: int, label: str = ""
) -> Card:
    """Sign a card for a device; `BadText` if its label is longer than others accept."""
    if len(label) > LABEL_CHARS:
        raise BadText(f"the label of a device has at most {LABEL_CHARS} characters, not {len(label)}")
    fields = (person.public, device_key, not_before, not_after, label)
    sig = person.sign(_CARD_TAG + _encoder.encode(fields))
    return Card(AuthorId(person.public), PeerId(device_key), not_before, not_after, label, sig)


def check_card(card: Card) -> None:
    """Raise `RemoteError` unless the person signed it. Says nothing of its dates."""
    fields = (card.person, card.device_key, card.not_before, card.not_after, card.label)
    verify(card.person, _CARD_TAG + _encoder.encode(fields), card.sig)


DATES_LEEWAY = 300.0
"""Seconds by which clocks may differ before the dates of a card are judged wrongly."""


def is_good(card: Card, now: float, leeway: float = DATES_LEEWAY) -> bool:
    """Return whether a card's dates are good at this time, give or take clocks that differ."""
    return card.not_before - leeway <= now <= card.not_after + leeway


def check_dates(card: Card, now: float, leeway: float = DATES_LEEWAY) -> None:
    """Raise `RemoteError` if the card is not good at this time, give or take clocks that differ."""
    if now > card.not_after + leeway:
        raise RemoteError(Reason.CARD_EXPIRED, f"the card ended at {card.not_after}")
    if now < card.not_before - leeway:
        raise RemoteError(Reason.CARD_NOT_YET_VALID, f"the card begins at {card.not_before}")


def revoke(person: SigningKey, device: DeviceId, at: int) -> Revocation:
    """Sign the statement that a device is no longer the person's."""
    sig = person.sign(_REVOCATION_TAG + _encoder.encode((person.public, device, at)))
    return Revocation(AuthorId(person.public), device, at, sig)


def check_revocation(revocation: Revocation) -> None:
    """Raise `RemoteError` unless the person signed it."""
    fields = (revocation.person, revocation.device, revocation.at)
    verify(revocation.person, _REVOCATION_TAG + _encoder.encode(fields), revocation.sig)


PREFIX = "lc1"
_CHECKSUM_BYTES = 3
_MOST = 1024
_decoder = msgpack.Decoder(Card)


def card_to_text(card: Card) -> str:
    """Return a card as one line."""
    payload = msgpack.encode(card)
    letters = base64.b32encode(payload + _checksum(payload)).decode()
    return PREFIX + letters.rstrip("=").lower()


def card_from_text(text: str) -> Card:
    """Return the card of a line; `BadText` tells what is wrong. The person's signature is not checked."""
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
    except (DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadText(f"this is no card: {error}") from error


def _checksum(payload: bytes) -> bytes:
    return hashlib.sha256(PREFIX.encode() + payload).digest()[:_CHECKSUM_BYTES]
