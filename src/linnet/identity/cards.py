"""Device cards: a person's signed word that a device key is theirs, for a time.

The person key signs cards and revocations only and may stay offline; device keys sign events and
open links (docs/design/identity.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from msgspec import Meta, Struct, msgpack

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
    """A card for a device, signed by the person; `BadText` if its label is longer than others read."""
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
    """Whether a card's dates are good at this time, give or take clocks that differ."""
    return card.not_before - leeway <= now <= card.not_after + leeway


def check_dates(card: Card, now: float, leeway: float = DATES_LEEWAY) -> None:
    """Raise `RemoteError` if the card is not good at this time, give or take clocks that differ."""
    if now > card.not_after + leeway:
        raise RemoteError(Reason.CARD_EXPIRED, f"the card ended at {card.not_after}")
    if now < card.not_before - leeway:
        raise RemoteError(Reason.CARD_NOT_YET_VALID, f"the card begins at {card.not_before}")


def revoke(person: SigningKey, device: DeviceId, at: int) -> Revocation:
    """The person's word that a device is theirs no longer."""
    sig = person.sign(_REVOCATION_TAG + _encoder.encode((person.public, device, at)))
    return Revocation(AuthorId(person.public), device, at, sig)


def check_revocation(revocation: Revocation) -> None:
    """Raise `RemoteError` unless the person signed it."""
    fields = (revocation.person, revocation.device, revocation.at)
    verify(revocation.person, _REVOCATION_TAG + _encoder.encode(fields), revocation.sig)
