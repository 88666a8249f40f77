"""Quantiles by nearest rank: one definition for the demo, the simulator and the lab.

The quantile *q* of *n* values is the one at rank ceil(q·n), counted from the smallest: the smallest observed
value such that the share *q* of all values is at most as large.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil
from typing import TypeVar

T = TypeVar("T", int, float)


def rank(share: float, count: int) -> int:
    """Return the rank of a quantile among so many values, counted from 1."""
    # Uses the decimal number as written: 0.55 · 100 is 55, and in floating point it is more.
    return max(1, ceil(Fraction(str(share)) * count))


def quantile(ordered: Sequence[T], share: float) -> T | None:
    """Return the quantile of values in rising order; None if there are none."""
    return ordered[rank(share, len(ordered)) - 1] if ordered else None


def within_ms(microseconds: int) -> int | float:
    """Return milliseconds for a statement "within": four significant digits, rounded up and never down."""
    tenths = -(-microseconds // 100)
    return tenths / 10 if tenths < 10_000 else -(-microseconds // 1000)
