"""From published laws to tables of 65,536 entries: 16 random bits choose one.

A draw is then a look-up of integers: quick, and the same on every machine, which logarithms of floats
are not. Entry k of a table is the value at the quantile (k + 1/2) / 65,536.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from linnet.lab.generate.facts import CHARS, LARGEST, NEXT_KIND, PARTICIPATION, PAUSES, Pauses

SLOTS = 1 << 16


@cache
def pause_parts() -> NDArray[np.uint8]:
    """Which part of the mixture of pauses, by 16 bits."""
    return _choices([part.share for part in PAUSES])


@cache
def pause_seconds() -> NDArray[np.int32]:
    """Pauses in whole seconds, rounded down: SLOTS entries for each part of the mixture, one after the other.

    Instead of drawing until a pause lies between the limits of its part, the distribution function is
    inverted between them, which is the same law. The longest pause is one of 20 days.
    """
    return np.concatenate([_part(part) for part in PAUSES])


def _part(part: Pauses) -> NDArray[np.int32]:
    below = 1 - math.exp(part.shift - part.rate * part.least)
    above = 1 - math.exp(part.shift - part.rate * part.most)
    quantiles = (below + (above - below) * (slot + 0.5) / SLOTS for slot in range(SLOTS))
    seconds = ((part.shift - math.log1p(-u)) / part.rate * part.unit for u in quantiles)
    return np.fromiter((int(each) for each in seconds), dtype=np.int32, count=SLOTS)


@cache
def next_kinds() -> NDArray[np.uint8]:
    """The kind that follows, by the kind before (SLOTS entries each) and 16 bits; texts come first."""
    return np.concatenate([_choices(row) for row in NEXT_KIND])


@cache
def char_counts() -> NDArray[np.int32]:
    """Characters of a text."""
    points = np.array(CHARS, dtype=np.float64)
    quantiles = (np.arange(SLOTS) + 0.5) / SLOTS * 1_000_000
    between = np.interp(quantiles, points[:, 1], points[:, 0])
    return np.ceil(between).astype(np.int32)


@cache
def authors(members: int) -> NDArray[np.uint8]:
    """Who writes in a group of so many, by rank from 0; beyond the third, all write alike often."""
    if not 2 <= members <= LARGEST:
        raise ValueError(f"a group has 2 to {LARGEST} members")
    row = next(each for each in PARTICIPATION if members <= each.members)
    ranked = list(row.ranked[:members])
    rest = members - len(ranked)
    return _choices(ranked + [row.others / max(1, rest)] * rest)


def _choices(shares: Sequence[float]) -> NDArray[np.uint8]:
    """Numbers from 0, each in as many entries as its share of the sum."""
    whole = math.fsum(shares)
    ends = [round(SLOTS * math.fsum(shares[: n + 1]) / whole) for n in range(len(shares))]
    return np.repeat(np.arange(len(shares), dtype=np.uint8), np.diff([0, *ends]))
