"""Fragments of a sealed place: each encrypted under a key of its own, made from that of the epoch's step.

The body of a fragment with the flag ``SEALED``::

    epoch 8 · step u32 · guard 8 · ciphertext, with its tag of 16

Bound are all other fields of the event, the head among them: place, author, device, number in the chain,
term, fragment, message, offset, generation, flags. The guard is random: should an old state ever be
restored, a number that is used again still meets another key. Lengths are not hidden: offsets count them.
"""

from __future__ import annotations

import struct

from msgspec import Struct
from msgspec.structs import replace

from linnet.core.errors import MalformedMessage
from linnet.core.ids import AuthorId, DeviceId, EventId, TopicId
from linnet.core.luck import Entropy
from linnet.event.binding import bound, bound_of
from linnet.event.event import Event, Tail
from linnet.groups.labels import fields
from linnet.groups.primitives import KEY_BYTES, NONCE_BYTES, hkdf, open_sealed, seal
from linnet.places.multicast.fragmentation import SEALED_BYTES
from linnet.places.sealed.epoch_keys import PIECE_LABEL, EpochKey

_PREFIX = struct.Struct(">8sI8s")
_GUARD_BYTES = 8
_NUMBERS = struct.Struct(">IQ")


class Prefix(Struct, frozen=True):
    """What stands before the ciphertext."""

    epoch: bytes
    step: int
    guard: bytes


class Spot(Struct, frozen=True, gc=False):
    """The next event of our chain in a place."""

    place: TopicId
    author: AuthorId
    device: DeviceId
    seq: int
    prev: EventId | None


def read_prefix(body: bytes) -> Prefix:
    """Which key a piece needs; `MalformedMessage` if it is too short to be sealed."""
    if len(body) < SEALED_BYTES:
        raise MalformedMessage(f"a sealed piece of {len(body)} bytes")
    return Prefix(*_PREFIX.unpack_from(body))


def seal_piece(tail: Tail, spot: Spot, key: EpochKey, entropy: Entropy) -> Tail:
    """The next event of our chain with its body encrypted."""
    guard = entropy(_GUARD_BYTES)
    secret, nonce = _keys(key, spot.place, spot.author, spot.device, spot.seq, guard)
    data = bound(spot.place, spot.author, spot.device, spot.seq, spot.prev, tail)
    return replace(tail, body=_PREFIX.pack(key.epoch, key.step, guard) + seal(secret, nonce, tail.body, data))


def open_piece(event: Event, prefix: Prefix, key: EpochKey) -> bytes:
    """What a piece says; `RemoteError` with ``undecryptable`` if it does not open."""
    secret, nonce = _keys(key, event.topic, event.author, event.device, event.seq or 0, prefix.guard)
    return open_sealed(secret, nonce, event.body[_PREFIX.size :], bound_of(event))


def _keys(
    key: EpochKey, place: TopicId, author: AuthorId, device: DeviceId, seq: int, guard: bytes
) -> tuple[bytes, bytes]:
    """Key and nonce of one fragment: of its place in its device's chain, which no other has."""
    spot = (place, author, device, key.epoch, _NUMBERS.pack(key.step, seq), guard)
    made = hkdf(b"", key.key, fields(PIECE_LABEL, *spot), KEY_BYTES + NONCE_BYTES)
    return made[:KEY_BYTES], made[KEY_BYTES:]
