"""Messages of a sealed stream: each is encrypted under its own key, derived from that of the epoch.

There is no ratchet from message to message (`groups.message_keys`), since streams lose, skip and repeat
messages. Carriers see this of a message::

    version u8 · epoch u32 · announcement u64 · guard 4

The announcement is the number, in the same chain, of the newest event that told readers a key; a reader
that lacks the key looks for it there.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from linnet.core.errors import MalformedMessage
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.event.event import MESSAGE, Event, Spot, Tail, Unverified
from linnet.event.signing import unit_head
from linnet.groups.labels import u32
from linnet.groups.message_crypto import PLAINTEXT_BYTES, pad, unpad
from linnet.groups.message_keys import MessageKey, derive_key
from linnet.streams.sealed.stream_keys import MESSAGE_LABEL, EpochKey

LONGEST: Final = PLAINTEXT_BYTES
"""The most bytes in a message."""
VERSION: Final = 1
_CLEAR = struct.Struct(">BIQ4s")
_GUARD_BYTES = 4
_NUMBER = struct.Struct(">Q")
_NO_SIGNATURE = bytes(64)
_encode = msgspec.msgpack.Encoder().encode


class Clear(Struct, frozen=True):
    """The part of a message that carriers can read."""

    epoch: int
    announced: int
    """The number of the newest announcement before it."""
    guard: bytes


def is_sealed(event: Event) -> bool:
    """Return whether an event of the owner's is a message that must be opened."""
    return event.tail.clear is not None and event.tail.kind == MESSAGE


def read_clear(clear: bytes) -> Clear:
    """Parse the part of a message that carriers can read; raises `MalformedMessage` if it is malformed."""
    if len(clear) != _CLEAR.size:
        raise MalformedMessage(f"a sealed message has {_CLEAR.size} clear bytes, not {len(clear)}")
    version, epoch, announced, guard = _CLEAR.unpack(clear)
    if version != VERSION:
        raise MalformedMessage(f"a sealed message of version {version}", Reason.UNSUPPORTED)
    return Clear(epoch, announced, guard)


def seal_tails(
    tails: Sequence[Tail], spot: Spot, epoch: EpochKey, announced: int, entropy: Entropy
) -> list[Tail]:
    """Encrypt the bodies of the next events of our chain. Raises `Refused` if one is too long.

    Each is bound to the one before it, so they are made one after the other and stay in this order.
    """
    sealed: list[Tail] = []
    topic, author, device = spot.topic, spot.author, spot.device
    for number, tail in enumerate(tails, spot.seq or 0):
        guard = entropy(_GUARD_BYTES)
        shown = replace(tail, clear=_CLEAR.pack(VERSION, epoch.epoch, announced, guard))
        key = _derive(epoch, spot, guard)
        made = replace(shown, body=key.seal(pad(tail.body), spot, shown))
        unit = Unverified(topic, author, device, spot.seq, spot.prev, (_encode(made),), _NO_SIGNATURE)
        spot = replace(spot, seq=number + 1, prev=unit_head(unit))
        sealed.append(made)
    return sealed


def open_event(event: Event, clear: Clear, epoch: EpochKey) -> Event:
    """Decrypt an event's body; raises `RemoteError` with ``undecryptable`` if it does not open."""
    key = _derive(epoch, event, clear.guard)
    return replace(event, tail=replace(event.tail, body=unpad(key.open(event.body, event))))


def _derive(epoch: EpochKey, spot: Spot | Event, guard: bytes) -> MessageKey:
    number = _NUMBER.pack(spot.seq or 0)
    place = (spot.topic, spot.author, epoch.device, u32(epoch.epoch), number, guard)
    return derive_key(epoch.key, MESSAGE_LABEL, *place)
