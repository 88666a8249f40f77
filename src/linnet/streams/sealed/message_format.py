"""Messages of a sealed stream: each encrypted under a key of its own, made from that of the epoch.

There is no ratchet from message to message, for streams lose, skip and repeat: whoever has the epoch's
key opens any message of it by itself. What carriers see of a message::

    version u8 · epoch u32 · announcement u64 · guard 4

The announcement is the number, in the same chain, of the newest event that told readers a key; whoever
lacks the key looks for it there. The guard is random: should an old state ever be restored, a number
that is used again still meets another key.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from linnet.core.errors import MalformedMessage
from linnet.core.ids import AuthorId, DeviceId, EventId, TopicId
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.event.binding import bound, bound_of
from linnet.event.event import MESSAGE, Event, Tail, Unverified
from linnet.event.signing import unit_head
from linnet.groups.labels import fields, u32
from linnet.groups.primitives import KEY_BYTES, NONCE_BYTES, hkdf, open_sealed, seal
from linnet.groups.sealing import PLAINTEXT_BYTES, pad, unpad
from linnet.streams.sealed.stream_keys import MESSAGE_LABEL, EpochKey

LONGEST: Final = PLAINTEXT_BYTES
"""Bytes of the longest message."""
VERSION: Final = 1
_CLEAR = struct.Struct(">BIQ4s")
_GUARD_BYTES = 4
_NUMBER = struct.Struct(">Q")
_NO_SIGNATURE = bytes(64)
_encode = msgspec.msgpack.Encoder().encode


class Clear(Struct, frozen=True):
    """What carriers see of a message."""

    epoch: int
    announced: int
    """Number of the newest announcement before it."""
    guard: bytes


class Chain(Struct, frozen=True):
    """Our own chain: what a message is bound to beside its own fields."""

    topic: TopicId
    author: AuthorId
    device: DeviceId
    seq: int
    """Of the event that comes next."""
    prev: EventId | None


def is_sealed(event: Event) -> bool:
    """Whether an event of the owner's is a message that must be opened."""
    return event.tail.clear is not None and event.tail.kind == MESSAGE


def read_clear(clear: bytes) -> Clear:
    """What carriers see of a message; `MalformedMessage` if it is none."""
    if len(clear) != _CLEAR.size:
        raise MalformedMessage(f"a sealed message has {_CLEAR.size} clear bytes, not {len(clear)}")
    version, epoch, announced, guard = _CLEAR.unpack(clear)
    if version != VERSION:
        raise MalformedMessage(f"a sealed message of version {version}", Reason.UNSUPPORTED)
    return Clear(epoch, announced, guard)


def seal_tails(
    tails: Sequence[Tail], chain: Chain, epoch: EpochKey, announced: int, entropy: Entropy
) -> list[Tail]:
    """The next events of our chain with their bodies encrypted. `Refused` if one is too long.

    Each is bound to the one before it, so they are made one after the other and stay in this order.
    """
    sealed: list[Tail] = []
    topic, author, device, prev = chain.topic, chain.author, chain.device, chain.prev
    for seq, tail in enumerate(tails, chain.seq):
        guard = entropy(_GUARD_BYTES)
        shown = replace(tail, clear=_CLEAR.pack(VERSION, epoch.epoch, announced, guard))
        key, nonce = _keys(epoch, topic, author, seq, guard)
        body = seal(key, nonce, pad(tail.body), bound(topic, author, device, seq, prev, shown))
        made = replace(shown, body=body)
        prev = unit_head(Unverified(topic, author, device, seq, prev, (_encode(made),), _NO_SIGNATURE))
        sealed.append(made)
    return sealed


def open_event(event: Event, clear: Clear, epoch: EpochKey) -> Event:
    """The event with what it says; `RemoteError` with ``undecryptable`` if it does not open."""
    key, nonce = _keys(epoch, event.topic, event.author, event.seq or 0, clear.guard)
    body = unpad(open_sealed(key, nonce, event.body, bound_of(event)))
    return replace(event, tail=replace(event.tail, body=body))


def _keys(epoch: EpochKey, topic: TopicId, author: AuthorId, seq: int, guard: bytes) -> tuple[bytes, bytes]:
    """Key and nonce of one message: of its place in its chain, which no other has."""
    place = (topic, author, epoch.device, u32(epoch.epoch), _NUMBER.pack(seq), guard)
    made = hkdf(b"", epoch.key, fields(MESSAGE_LABEL, *place), KEY_BYTES + NONCE_BYTES)
    return made[:KEY_BYTES], made[KEY_BYTES:]
