"""Stamps: work that somebody does before an open relay serves a new room, so that storage is no gift.

A stamp is a number with which a hash begins with so many zero bits (Back 2002, Hashcash). Finding it takes
two to the power of the bits in hashes on average, checking it takes one. It counts for one relay, one room
and one device, and for an hour or two: made for another of them, or earlier, it is worth nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Annotated

from msgspec import Meta, Struct

from linnet.core.ids import Count, PeerId, TopicId

WINDOW = 3600
"""Seconds of a window, by the relay's clock. A stamp is good in its window and the next."""
MOST_BITS = 40
"""The highest price: more than a week of one core."""
RATE = 1_000_000
"""Hashes a second of one core, about, with which prices are told in seconds."""

_TAG = b"linnet/relay stamp/1"
_STEP = 65_536

Bits = Annotated[int, Meta(ge=0, le=MOST_BITS)]


class StampPrice(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """What a relay asks for a new room."""

    bits: Annotated[int, Meta(ge=0, le=64)]
    """Zero bits with which the hash must begin."""
    window: Count
    """The window for which the stamp is to be made."""


class Stamp(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The proof of work for one relay, room and device."""

    window: Count
    nonce: Count


def window_at(now: float) -> int:
    """Return the number of the window at this time."""
    return max(0, int(now // WINDOW))


def seconds_of(bits: int) -> float:
    """Return about how long one core takes to find a stamp, on average."""
    return float(2**bits) / RATE


def is_paid(stamp: Stamp | None, bits: int, relay: PeerId, room: TopicId, device: PeerId, now: float) -> bool:
    """Return whether a stamp is good at a relay now."""
    if bits <= 0:
        return True
    if stamp is None or stamp.window not in (window_at(now), window_at(now) - 1):
        return False
    hashed = _begun(relay, room, device, stamp.window)
    hashed.update(stamp.nonce.to_bytes(8, "big"))
    return _zero_bits(hashed.digest()) >= bits


def find_stamp(
    price: StampPrice,
    relay: PeerId,
    room: TopicId,
    device: PeerId,
    goes_on: Callable[[int], bool] = lambda tried: True,
) -> Stamp | None:
    """Find a stamp of this price: work for a thread of its own.

    `goes_on` is told now and then how many numbers were tried; None if it returns False.
    """
    begun = _begun(relay, room, device, price.window)
    limit = 1 << (256 - price.bits)
    nonce = 0
    while True:
        for number in range(nonce, nonce + _STEP):
            hashed = begun.copy()
            hashed.update(number.to_bytes(8, "big"))
            if int.from_bytes(hashed.digest(), "big") < limit:
                return Stamp(price.window, number)
        nonce += _STEP
        if not goes_on(nonce):
            return None


def _begun(relay: PeerId, room: TopicId, device: PeerId, window: int) -> hashlib._Hash:
    return hashlib.sha256(_TAG + relay + room + device + window.to_bytes(8, "big"))


def _zero_bits(digest: bytes) -> int:
    return 256 - int.from_bytes(digest, "big").bit_length()
