"""Where machines get their luck from: both sources are given, none is ambient."""

from __future__ import annotations

from collections.abc import Callable

Entropy = Callable[[int], bytes]
"""Secret bytes, so many: `secrets.token_bytes` in the field, a seeded stream in a simulation."""
