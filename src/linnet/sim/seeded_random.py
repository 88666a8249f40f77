"""Random numbers, entropy and identities that follow from a seed.

Each name has a stream of its own, so the draws of one node do not disturb another's, and adding a node leaves
the draws of the others unchanged. Nothing here depends on the hash seed of the process.
"""

from __future__ import annotations

import hashlib
from random import Random

from linnet.identity.cards import CARD_DAYS, issue_card
from linnet.identity.keys import SigningKey
from linnet.peer.config import Identity


class SeededEntropy:
    """Bytes that look secret and are not: `linnet.core.luck.Entropy` for simulations only.

    Predictable keys can come from no other place in Linnet.
    """

    __slots__ = ("_count", "_key")

    def __init__(self, seed: int, name: str) -> None:
        self._key = _digest(seed, "entropy", name)
        self._count = 0

    def __call__(self, size: int) -> bytes:
        """Return the next bytes of this stream."""
        block = hashlib.shake_256(self._key + self._count.to_bytes(8, "big")).digest(size)
        self._count += 1
        return block


def named_luck(seed: int, name: str) -> Random:
    """Return the generator of this name in the simulation of this seed."""
    return Random(int.from_bytes(_digest(seed, "luck", name), "big"))


def _digest(seed: int, purpose: str, name: str) -> bytes:
    return hashlib.sha256(f"linnet/sim/{purpose}/{seed}/{name}".encode()).digest()


_DAY = 86_400


def seeded_identity(seed: int, name: str, now: float) -> Identity:
    """Make a person with one device, the same for equal seed and name; the card is valid from now on."""
    entropy = SeededEntropy(seed, f"identity/{name}")
    person = SigningKey.generate(entropy)
    device = SigningKey.generate(entropy)
    first = int(now)
    return Identity(device, issue_card(person, device.public, first, first + CARD_DAYS * _DAY, name))
