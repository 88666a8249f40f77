"""A stand-in for the group of private set intersection, for simulations of many nodes.

It hides nothing: a mask is taken off by whoever knows one masked element. But blinding commutes as it
does in the real group, messages have the same sizes, and so honest nodes come to the same results.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from linnet.core.errors import RemoteError
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.overlay.trackerless.oblivious import POINT_BYTES, SCALAR_BYTES


class IdealGroup:
    """Elements are hashes, and blinding is exclusive or: `linnet.overlay.trackerless.oblivious.Group`."""

    def hash_to_group(self, data: bytes) -> bytes:
        """The element that stands for these bytes."""
        return blake2b(data, digest_size=POINT_BYTES).digest()

    def scalar(self, entropy: Entropy) -> bytes:
        """A mask."""
        return entropy(SCALAR_BYTES)

    def inverses(self, scalars: Sequence[bytes]) -> list[bytes]:
        """A mask takes itself off again."""
        return list(scalars)

    def multiply(self, scalar: bytes, point: bytes) -> bytes:
        """The element, masked; zero stands for the identity, and is refused as in the real group."""
        if len(point) != POINT_BYTES or not any(point):
            raise RemoteError(Reason.MALFORMED, "no point of the group, or its identity")
        masked = int.from_bytes(scalar, "big") ^ int.from_bytes(point, "big")
        return masked.to_bytes(POINT_BYTES, "big")


IDEAL = IdealGroup()
