"""What a zone says under one label: a signed set of records with a version and an end.

A zone is a person's key. That key may stay offline, so it signs no records: a device does, and its card
travels along, as with everything else that is said (decision 0019). The version is the time of signing in
milliseconds, pushed on where the clock stood still; of several sets, also of several devices, the newest
counts. A set without records is a removal: it lives as long as anything that it takes back.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta, Struct

from linnet.core.errors import MalformedMessage, Refused, RemoteError
from linnet.core.ids import (
    AuthorId,
    Contact,
    Count,
    DeviceId,
    TopicId,
    WireAuthorId,
    WireSignature,
    WireTopicId,
)
from linnet.core.reasons import Reason
from linnet.identity.cards import Card, CardCheck, check_card
from linnet.identity.keys import SigningKey, verify

CONTACTS = 8
LABEL_BYTES = 63
CONTACT_LABEL = "+"
"""Under it a zone has the place where its person is asked something first: a place without guests."""

_TAG = b"linnet/names/1"
_encode = msgspec.msgpack.Encoder().encode


class PlaceRecord(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=1, gc=False):
    """PLACE: a place, and peers at which one can enter it. Under `+` it is the contact of the zone."""

    place: WireTopicId
    contacts: Annotated[tuple[Contact, ...], Meta(min_length=1, max_length=CONTACTS)]


class DelegationRecord(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=2, gc=False):
    """DELEGATION: what is left of this label is said by another zone."""

    zone: WireAuthorId


ZoneRecord: TypeAlias = PlaceRecord | DelegationRecord
Records: TypeAlias = tuple[ZoneRecord, ...]


class RecordSet(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """All that a zone says under one label, at most one record of each sort."""

    label: Annotated[str, Meta(min_length=1, max_length=LABEL_BYTES)]
    version: Count
    """Milliseconds of Unix time; the newest counts."""
    expires: Count
    """The second of Unix time from which it is good no longer."""
    records: Annotated[tuple[ZoneRecord, ...], Meta(max_length=2)]
    card: Card
    sig: WireSignature

    @property
    def zone(self) -> AuthorId:
        """Whose word it is."""
        return self.card.person

    @property
    def device(self) -> DeviceId:
        """Which device of the zone's person signed."""
        return self.card.device

    @property
    def place(self) -> PlaceRecord | None:
        """Its place, if it has one."""
        return next((each for each in self.records if isinstance(each, PlaceRecord)), None)

    @property
    def delegation(self) -> DelegationRecord | None:
        """Its delegation, if it has one."""
        return next((each for each in self.records if isinstance(each, DelegationRecord)), None)

    @property
    def until(self) -> int:
        """Until when it can be relied on: no longer than its signer's card."""
        return min(self.expires, self.card.not_after)


_decoder = msgspec.msgpack.Decoder(RecordSet)


def sign_set(
    key: SigningKey, card: Card, label: str, version: int, expires: int, records: Records, bound: bytes
) -> RecordSet:
    """What the zone of this card says under a label; `Refused` if it cannot be said like this.

    `bound` ties it to the one block that it is sealed in, so that no reader can say it elsewhere.
    """
    _one_of_each(records)
    fields = (label, version, expires, records)
    return RecordSet(*fields, card, key.sign(_signed(card.person, fields, bound)))


def check_set(
    said: RecordSet, zone: AuthorId, label: str, bound: bytes, check: CardCheck = check_card
) -> None:
    """Raise `RemoteError` unless a device of this zone said it, under this label. Dates are not judged."""
    if said.zone != zone or said.label != label:
        raise RemoteError(Reason.BAD_SIGNATURE, "it is another zone's, or another label's")
    check(said.card)
    fields = (said.label, said.version, said.expires, said.records)
    verify(said.card.device_key, _signed(zone, fields, bound), said.sig)
    try:
        _one_of_each(said.records)
    except Refused as error:
        raise MalformedMessage(error.detail) from error


def encode_set(said: RecordSet) -> bytes:
    """Its bytes."""
    return _encode(said)


def decode_set(data: bytes) -> RecordSet:
    """The set of these foreign bytes; `MalformedMessage` if they are none."""
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedMessage(f"no record set: {type(error).__name__}") from None


def place_of(place: TopicId, contacts: tuple[Contact, ...]) -> PlaceRecord:
    """A PLACE; `Refused` without a contact, or with too many."""
    if not 0 < len(contacts) <= CONTACTS:
        raise Refused(Reason.TOO_MANY, f"a place is entered at 1 to {CONTACTS} peers, not at {len(contacts)}")
    return PlaceRecord(place, contacts)


def _signed(zone: AuthorId, fields: tuple[object, ...], bound: bytes) -> bytes:
    return _TAG + _encode((zone, *fields, bound))


def _one_of_each(records: Records) -> None:
    if len({type(each) for each in records}) != len(records):
        raise Refused(Reason.TOO_MANY, "a label has at most one place and one delegation")
