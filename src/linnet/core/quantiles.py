"""Quantiles by nearest rank: one definition for the demo, the simulator and the lab.

The quantile *q* of *n* values is the one at rank ceil(q·n), counted from the smallest: a value that was
seen, and the smallest of which it is true that the share *q* of all lies at or below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil
from typing import TypeVar

T = TypeVar("T", int, float)


def rank(share: float, count: int) -> int:
    """The rank of a quantile among so many values, from 1."""
    # By the decimal number that was written: 0.55 · 100 is 55, and as floating point it is more.
    return max(1, ceil(Fraction(str(share)) * count))


def quantile(ordered: Sequence[T], share: float) -> T | None:
    """The quantile of values in rising order; None of nothing."""
    return ordered[rank(share, len(ordered)) - 1] if ordered else None


def within_ms(microseconds: int) -> int | float:
    """Milliseconds to be told as "within": four digits that say something, rounded up and never down."""
    tenths = -(-microseconds // 100)
    return tenths / 10 if tenths < 10_000 else -(-microseconds // 1000)
