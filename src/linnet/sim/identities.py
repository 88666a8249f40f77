"""Keys and cards that follow from a seed."""

from __future__ import annotations

from linnet.identity.cards import CARD_DAYS, issue_card
from linnet.identity.keys import SigningKey
from linnet.peer.config import Identity
from linnet.sim.luck import SeededEntropy

_DAY = 86_400


def seeded_identity(seed: int, name: str, now: float) -> Identity:
    """A person with one device, alike for equal seed and name; the card is good from now on."""
    entropy = SeededEntropy(seed, f"identity/{name}")
    person = SigningKey.generate(entropy)
    device = SigningKey.generate(entropy)
    first = int(now)
    return Identity(device, issue_card(person, device.public, first, first + CARD_DAYS * _DAY, name))
