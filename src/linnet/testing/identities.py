"""Identities for tests: the same name is always the same person with the same device."""

from __future__ import annotations

from linnet.peer.config import Identity
from linnet.sim.clock import START
from linnet.sim.seeded_random import seeded_identity


def known_identity(name: str, now: float = START) -> Identity:
    """The identity of this name."""
    return seeded_identity(0, name, now)
