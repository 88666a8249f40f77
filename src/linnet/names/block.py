"""A record set as stores see it: sealed, padded, under a lookup key, signed twice.

The *gate* signature shows that whoever made the block knows the name: the lookup key is the gate's public
half, so a block for a lookup key that one has only seen cannot be made. The *owner* signature shows which
blocks come from one hand, so that a newer one replaces an older one. Neither says whose name it is: that is
inside, in the signature of the zone's device, for those who can open it.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta, Struct

from linnet.core.errors import MalformedMessage, Refused, RemoteError
from linnet.core.ids import AuthorId, Count, WireSignature
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.groups.primitives import NONCE_BYTES, TAG_BYTES, open_sealed, seal
from linnet.identity.cards import Card, CardCheck, check_card
from linnet.identity.keys import SigningKey, verify
from linnet.names.derivation import NameKeys, owner_key
from linnet.names.records import Records, RecordSet, check_set, decode_set, encode_set, sign_set

SIZES = (1024, 2048, 4096, 8192, 16_384)
"""Bytes that a set is padded to: its length says little about what it holds."""
SEALED_BYTES = NONCE_BYTES + SIZES[-1] + TAG_BYTES
LENGTH_BYTES = 4
LEEWAY = 300
"""Seconds that clocks may differ by."""

_GATE_TAG = b"linnet/name gate/1"
_OWNER_TAG = b"linnet/name block/1"
_encode = msgspec.msgpack.Encoder().encode

Key = Annotated[bytes, Meta(min_length=32, max_length=32)]


class Block(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """What a store keeps. Version and end are those of the set inside."""

    lookup: Key
    owner: Key
    version: Count
    expires: Count
    sealed: Annotated[bytes, Meta(min_length=NONCE_BYTES + TAG_BYTES, max_length=SEALED_BYTES)]
    gate: WireSignature
    sig: WireSignature


class Saying(NamedTuple):
    """What a zone wants to say under a label."""

    label: str
    version: int
    expires: int
    records: Records


def close_block(keys: NameKeys, device: SigningKey, card: Card, saying: Saying, entropy: Entropy) -> Block:
    """Sign, seal and sign again; `Refused` if it is too much for one label."""
    gate = keys.gate
    lookup = gate.public
    owner = owner_key(device, lookup)
    said = sign_set(
        device, card, saying.label, saying.version, saying.expires, saying.records, lookup + owner.public
    )
    nonce = entropy(NONCE_BYTES)
    head = (lookup, owner.public, saying.version, saying.expires)
    sealed = nonce + seal(keys.seal_key(owner.public), nonce, _padded(encode_set(said)), _encode(head))
    covered = _encode((*head, sealed))
    return Block(*head, sealed, gate.sign(_GATE_TAG + covered), owner.sign(_OWNER_TAG + covered))


def is_early(block: Block, now: float) -> bool:
    """Whether a block was made by a clock that was ahead of ours by more than clocks may differ."""
    return block.version > (now + LEEWAY) * 1000


def check_block(block: Block) -> None:
    """Raise `RemoteError` unless both outer signatures are right: all that a store can see."""
    covered = _encode((*_head(block), block.sealed))
    verify(block.lookup, _GATE_TAG + covered, block.gate)
    verify(block.owner, _OWNER_TAG + covered, block.sig)


def open_block(
    block: Block, keys: NameKeys, zone: AuthorId, label: str, check: CardCheck = check_card
) -> RecordSet:
    """What the zone says; `RemoteError` if it is not the zone that says it. Dates are not judged."""
    check_block(block)
    if block.lookup != keys.lookup:
        raise RemoteError(Reason.BAD_SIGNATURE, "it is kept under another key")
    nonce, sealed = block.sealed[:NONCE_BYTES], block.sealed[NONCE_BYTES:]
    plain = open_sealed(keys.seal_key(block.owner), nonce, sealed, _encode(_head(block)))
    said = decode_set(_unpadded(plain))
    check_set(said, zone, label, block.lookup + block.owner, check)
    if (said.version, said.expires) != (block.version, block.expires):
        raise RemoteError(Reason.BAD_SIGNATURE, "outside it claims another version or end than inside")
    return said


def _head(block: Block) -> tuple[bytes, bytes, int, int]:
    return (block.lookup, block.owner, block.version, block.expires)


def _padded(data: bytes) -> bytes:
    whole = len(data).to_bytes(LENGTH_BYTES, "big") + data
    size = next((each for each in SIZES if each >= len(whole)), None)
    if size is None:
        raise Refused(Reason.TOO_LARGE, f"{len(data)} bytes, a label has room for {SIZES[-1] - LENGTH_BYTES}")
    return whole.ljust(size, b"\0")


def _unpadded(plain: bytes) -> bytes:
    length = int.from_bytes(plain[:LENGTH_BYTES], "big")
    data, rest = plain[LENGTH_BYTES : LENGTH_BYTES + length], plain[LENGTH_BYTES + length :]
    if len(data) != length or rest.strip(b"\0"):
        raise MalformedMessage("padded in a way that is none of ours")
    return data
