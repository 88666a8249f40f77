"""The secret randomness of machines: like `random.Random` it is passed in, never ambient."""

from __future__ import annotations

from collections.abc import Callable

Entropy = Callable[[int], bytes]
"""Returns so many secret bytes: `secrets.token_bytes` in the field, a seeded stream in a simulation."""
