"""Luck that can be had again: everything random in a simulation follows from one seed.

Each name has a stream of its own, so what one node draws does not disturb another, and adding a
node leaves the others' luck as it was. Nothing here depends on the hash seed of the process.
"""

from __future__ import annotations

import hashlib
from random import Random


class SeededEntropy:
    """Bytes that look secret and are not: `linnet.core.luck.Entropy` for simulations only.

    There is no other place in Linnet where predictable keys can come from.
    """

    __slots__ = ("_count", "_key")

    def __init__(self, seed: int, name: str) -> None:
        self._key = _digest(seed, "entropy", name)
        self._count = 0

    def __call__(self, size: int) -> bytes:
        """The next bytes of this stream."""
        block = hashlib.shake_256(self._key + self._count.to_bytes(8, "big")).digest(size)
        self._count += 1
        return block


def named_luck(seed: int, name: str) -> Random:
    """The generator of this name in the simulation of this seed."""
    return Random(int.from_bytes(_digest(seed, "luck", name), "big"))


def _digest(seed: int, purpose: str, name: str) -> bytes:
    return hashlib.sha256(f"linnet/sim/{purpose}/{seed}/{name}".encode()).digest()
