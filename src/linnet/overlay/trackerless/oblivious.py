"""The group that private set intersection is done in: ristretto255 (RFC 9496), by libsodium.

Ristretto has prime order, and each of its elements one encoding: there are no points of small order to
confine a secret to, and no second spelling of a point to slip past a comparison. Elements get into the
group as RFC 9380 and RFC 9497 say, so nobody knows the logarithm of one to another.

The library is loaded when the first element is made: a node that runs no intersection does without it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import accumulate
from types import ModuleType
from typing import Protocol

from linnet.core.errors import Refused, RemoteError
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason

POINT_BYTES = 32
SCALAR_BYTES = 32
WIDE_BYTES = 64
"""Bytes that a point or scalar is made of: so many more than it has that it is as good as uniform."""
DST = b"linnet/overlay/intersection/1-ristretto255_XMD:SHA-512_R255MAP_RO_"
"""Domain separation: elements of nothing else are made with it."""

_BLOCK = 128
_DIGEST = 64


class Group(Protocol):
    """What an intersection needs of a group: elements without known logarithm, and to blind them."""

    def hash_to_group(self, data: bytes) -> bytes:
        """The element that stands for these bytes."""

    def scalar(self, entropy: Entropy) -> bytes:
        """A secret to blind with, never zero."""

    def inverses(self, scalars: Sequence[bytes]) -> list[bytes]:
        """What takes each of these off again."""

    def multiply(self, scalar: bytes, point: bytes) -> bytes:
        """A point, blinded; raises `RemoteError` if it is none, or the identity."""


class Ristretto:
    """ristretto255 with SHA-512."""

    def hash_to_group(self, data: bytes, dst: bytes = DST) -> bytes:
        """The element that stands for these bytes under this tag (RFC 9380, appendix B)."""
        return self.map_to_group(expand_message(data, dst, WIDE_BYTES))

    def map_to_group(self, wide: bytes) -> bytes:
        """The element derived from 64 uniform bytes (RFC 9496, section 4.3.4)."""
        return bytes(_library().crypto_core_ristretto255_from_hash(wide))

    def scalar(self, entropy: Entropy) -> bytes:
        """A secret to blind with, never zero."""
        while not any(scalar := self.reduce(entropy(WIDE_BYTES))):
            pass
        return scalar

    def reduce(self, wide: bytes) -> bytes:
        """The scalar that 64 bytes are, modulo the order of the group."""
        return bytes(_library().crypto_core_ristretto255_scalar_reduce(wide))

    def inverses(self, scalars: Sequence[bytes]) -> list[bytes]:
        """What takes each of these off again; none may be zero.

        Only the product of all is inverted, and the rest is had by multiplying, which is far cheaper.
        """
        products = list(accumulate(scalars, _times))
        inverse = bytes(_library().crypto_core_ristretto255_scalar_invert(products[-1]))
        found: list[bytes] = []
        for scalar, before in zip(reversed(scalars), [*products[-2::-1], None], strict=True):
            found.append(inverse if before is None else _times(inverse, before))
            inverse = _times(inverse, scalar)
        return found[::-1]

    def multiply(self, scalar: bytes, point: bytes) -> bytes:
        """A point, blinded; raises `RemoteError` for any other encoding and for the identity."""
        if len(point) != POINT_BYTES:
            raise RemoteError(Reason.MALFORMED, f"a point has {POINT_BYTES} bytes")
        try:
            return bytes(_library().crypto_scalarmult_ristretto255(scalar, point))
        except RuntimeError:
            # From nothing, for the library's own words are of the scalar as much as of the point.
            raise RemoteError(Reason.MALFORMED, "no point of the group, or its identity") from None


RISTRETTO = Ristretto()


def expand_message(data: bytes, dst: bytes, size: int) -> bytes:
    """`expand_message_xmd` of RFC 9380, section 5.3.1, with SHA-512."""
    if len(dst) > 255 or not 0 < size <= 255 * _DIGEST:
        raise Refused(Reason.TOO_LARGE, "the tag or what is asked for is longer than RFC 9380 allows")
    tag = dst + bytes((len(dst),))
    whole = bytes(_BLOCK) + data + size.to_bytes(2, "big") + b"\x00" + tag
    first = hashlib.sha512(whole).digest()
    block = hashlib.sha512(first + b"\x01" + tag).digest()
    out = block
    for count in range(2, -(-size // _DIGEST) + 1):
        mixed = (int.from_bytes(first, "big") ^ int.from_bytes(block, "big")).to_bytes(_DIGEST, "big")
        block = hashlib.sha512(mixed + bytes((count,)) + tag).digest()
        out += block
    return out[:size]


def _times(one: bytes, other: bytes) -> bytes:
    return bytes(_library().crypto_core_ristretto255_scalar_mul(one, other))


class _Library:
    """libsodium, once it was needed."""

    def __init__(self) -> None:
        self.load: Callable[[], ModuleType] = lambda: import_module("rbcl")
        self._loaded: ModuleType | None = None

    def __call__(self) -> ModuleType:
        if self._loaded is None:
            self._loaded = self.load()
        return self._loaded


_library = _Library()


def load_by(load: Callable[[], ModuleType]) -> None:
    """Load the library by this when it is first needed: what becomes of its file is for drivers to say."""
    _library.load = load
