"""The records of one label of a zone: a signed record set, and the sealed block in which stores keep it.

A zone is a person's key. That key may stay offline, so it signs no records: a device does, and its card
travels along, as with every signed statement (decision 0019). The version is the time of signing in
milliseconds, increased by one if the clock stood still; of several sets, also of several devices, the newest
counts. A set without records is a removal: it lives as long as any set that it removes.

Stores see a set as a block: sealed, padded, under a lookup key, signed twice. The *gate* signature shows that
the maker of the block knows the name: the lookup key is the gate's public half, so nobody can make a block
for a lookup key that they have only seen. The *owner* signature shows which blocks have the same maker, so
that a newer one replaces an older one. Neither reveals the zone: the signature of the zone's device inside
does, to readers who can open the block.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple, TypeAlias

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
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.groups.primitives import NONCE_BYTES, TAG_BYTES, open_sealed, seal
from linnet.identity.cards import Card, CardCheck, check_card
from linnet.identity.keys import SigningKey, verify
from linnet.names.derivation import NameKeys, owner_key

CONTACTS = 8
LABEL_BYTES = 63
CONTACT_LABEL = "+"
"""The label of a zone's contact: a place without guests, at which its person can be reached first."""

_TAG = b"linnet/names/1"
_encode = msgspec.msgpack.Encoder().encode


class PlaceRecord(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=1, gc=False):
    """PLACE: a place, and peers at which one can enter it. Under `+` it is the contact of the zone."""

    place: WireTopicId
    contacts: Annotated[tuple[Contact, ...], Meta(min_length=1, max_length=CONTACTS)]


class DelegationRecord(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=2, gc=False):
    """DELEGATION: another zone resolves the labels to the left of this one."""

    zone: WireAuthorId


ZoneRecord: TypeAlias = PlaceRecord | DelegationRecord
Records: TypeAlias = tuple[ZoneRecord, ...]


class RecordSet(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """All records of a zone under one label, at most one of each sort."""

    label: Annotated[str, Meta(min_length=1, max_length=LABEL_BYTES)]
    version: Count
    """Milliseconds of Unix time; the newest set counts."""
    expires: Count
    """The second of Unix time from which the set is no longer valid."""
    records: Annotated[tuple[ZoneRecord, ...], Meta(max_length=2)]
    card: Card
    sig: WireSignature

    @property
    def zone(self) -> AuthorId:
        """The zone that the set belongs to: the person of the card."""
        return self.card.person

    @property
    def device(self) -> DeviceId:
        """The device of the zone's person that signed the set."""
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
        """The second until which the set can be trusted: no longer than its signer's card."""
        return min(self.expires, self.card.not_after)


_decoder = msgspec.msgpack.Decoder(RecordSet)


def sign_set(key: SigningKey, card: Card, said: Statement, bound: bytes) -> RecordSet:
    """Sign a record set of the zone of this card; `Refused` if a label cannot have these records.

    `bound` ties the set to the one block that seals it, so that no reader can reuse it elsewhere.
    """
    _check_kinds(said.records)
    return RecordSet(*said, card, key.sign(_bytes_to_sign(card.person, said, bound)))


def check_set(
    said: RecordSet, zone: AuthorId, label: str, bound: bytes, check: CardCheck = check_card
) -> None:
    """Raise `RemoteError` unless a device of this zone signed it for this label. Dates are not checked."""
    if said.zone != zone or said.label != label:
        raise RemoteError(Reason.BAD_SIGNATURE, "it is another zone's, or another label's")
    check(said.card)
    fields = (said.label, said.version, said.expires, said.records)
    verify(said.card.device_key, _bytes_to_sign(zone, fields, bound), said.sig)
    try:
        _check_kinds(said.records)
    except Refused as error:
        raise MalformedMessage(error.detail) from error


def decode_set(data: bytes) -> RecordSet:
    """Decode a set from untrusted bytes; `MalformedMessage` if they are none."""
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedMessage(f"no record set: {type(error).__name__}") from None


def make_place(place: TopicId, contacts: tuple[Contact, ...]) -> PlaceRecord:
    """Make a PLACE; `Refused` without a contact, or with too many."""
    if not 0 < len(contacts) <= CONTACTS:
        raise Refused(Reason.TOO_MANY, f"a place is entered at 1 to {CONTACTS} peers, not at {len(contacts)}")
    return PlaceRecord(place, contacts)


def _bytes_to_sign(zone: AuthorId, fields: tuple[object, ...], bound: bytes) -> bytes:
    return _TAG + _encode((zone, *fields, bound))


def _check_kinds(records: Records) -> None:
    if len({type(each) for each in records}) != len(records):
        raise Refused(Reason.TOO_MANY, "a label has at most one place and one delegation")


SIZES = (1024, 2048, 4096, 8192, 16_384)
"""The sizes in bytes that a set is padded to, so that its length reveals little of its content."""
SEALED_BYTES = NONCE_BYTES + SIZES[-1] + TAG_BYTES
LENGTH_BYTES = 4
LEEWAY = 300
"""Seconds that clocks may differ by."""

_GATE_TAG = b"linnet/name gate/1"
_OWNER_TAG = b"linnet/name block/1"

Key = Annotated[bytes, Meta(min_length=32, max_length=32)]


class Block(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A sealed record set. Version and expiry are those of the set inside."""

    lookup: Key
    owner: Key
    version: Count
    expires: Count
    sealed: Annotated[bytes, Meta(min_length=NONCE_BYTES + TAG_BYTES, max_length=SEALED_BYTES)]
    gate: WireSignature
    sig: WireSignature

    @property
    def key(self) -> bytes:
        """The key by which a shelf finds it."""
        return self.lookup


class Statement(NamedTuple):
    """A record set that is not signed yet."""

    label: str
    version: int
    expires: int
    records: Records


def seal_block(keys: NameKeys, device: SigningKey, card: Card, said: Statement, entropy: Entropy) -> Block:
    """Sign a record set, seal it and sign the block; `Refused` if it is too large for one label."""
    gate = keys.gate
    lookup = gate.public
    owner = owner_key(device, lookup)
    signed = sign_set(device, card, said, lookup + owner.public)
    nonce = entropy(NONCE_BYTES)
    head = (lookup, owner.public, said.version, said.expires)
    sealed = nonce + seal(keys.seal_key(owner.public), nonce, _pad(_encode(signed)), _encode(head))
    covered = _encode((*head, sealed))
    return Block(*head, sealed, gate.sign(_GATE_TAG + covered), owner.sign(_OWNER_TAG + covered))


def is_early(block: Block, now: float) -> bool:
    """Return whether a block was made by a clock that was ahead of ours by more than clocks may differ."""
    return block.version > (now + LEEWAY) * 1000


def check_block(block: Block) -> None:
    """Raise `RemoteError` unless both outer signatures are right: all that a store can check."""
    covered = _encode((*_head(block), block.sealed))
    verify(block.lookup, _GATE_TAG + covered, block.gate)
    verify(block.owner, _OWNER_TAG + covered, block.sig)


def open_block(
    block: Block, keys: NameKeys, zone: AuthorId, label: str, check: CardCheck = check_card
) -> RecordSet:
    """Open the record set in a block; `RemoteError` if the zone did not sign it. Dates are not checked."""
    check_block(block)
    if block.lookup != keys.lookup:
        raise RemoteError(Reason.BAD_SIGNATURE, "it is kept under another key")
    nonce, sealed = block.sealed[:NONCE_BYTES], block.sealed[NONCE_BYTES:]
    plain = open_sealed(keys.seal_key(block.owner), nonce, sealed, _encode(_head(block)))
    said = decode_set(_unpad(plain))
    check_set(said, zone, label, block.lookup + block.owner, check)
    if (said.version, said.expires) != (block.version, block.expires):
        raise RemoteError(Reason.BAD_SIGNATURE, "outside it claims another version or end than inside")
    return said


def _head(block: Block) -> tuple[bytes, bytes, int, int]:
    return (block.lookup, block.owner, block.version, block.expires)


def _pad(data: bytes) -> bytes:
    whole = len(data).to_bytes(LENGTH_BYTES, "big") + data
    size = next((each for each in SIZES if each >= len(whole)), None)
    if size is None:
        raise Refused(Reason.TOO_LARGE, f"{len(data)} bytes, a label has room for {SIZES[-1] - LENGTH_BYTES}")
    return whole.ljust(size, b"\0")


def _unpad(plain: bytes) -> bytes:
    length = int.from_bytes(plain[:LENGTH_BYTES], "big")
    data, rest = plain[LENGTH_BYTES : LENGTH_BYTES + length], plain[LENGTH_BYTES + length :]
    if len(data) != length or rest.strip(b"\0"):
        raise MalformedMessage("padded in a way that is none of ours")
    return data
