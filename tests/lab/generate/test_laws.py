"""The tables hold the published laws; the oracles draw as the source says, number by number."""

from __future__ import annotations

import math
from bisect import bisect_left
from random import Random

import numpy as np
import pytest

from linnet.lab.generate.facts import CHARS, NEXT_KIND, PARTICIPATION, PAUSES, Pauses
from linnet.lab.generate.laws import (
    SLOTS,
    authors,
    char_counts,
    next_kinds,
    pause_parts,
    pause_seconds,
)


def by_rejection(part: Pauses, luck: Random) -> float:
    while True:
        time = (part.shift - math.log(1 - luck.random())) / part.rate
        if part.least < time <= part.most:
            return time * part.unit


@pytest.mark.parametrize("number", range(len(PAUSES)))
def test_pauses_are_those_that_rejection_draws(number: int) -> None:
    luck = Random(number)
    drawn = np.sort([by_rejection(PAUSES[number], luck) for _ in range(20_000)])
    table = pause_seconds()[number * SLOTS : (number + 1) * SLOTS]
    shares = np.searchsorted(drawn, table + 0.5) / len(drawn)
    # Kolmogorov and Smirnov: 0.0138 would be exceeded by one in a thousand; whole seconds add a little.
    expected = (np.searchsorted(table, table + 0.5)) / SLOTS
    assert np.abs(shares - expected).max() < 0.0138 + (0.03 if number == 0 else 0)
    part = PAUSES[number]
    assert table.min() >= part.least * part.unit
    assert table.max() < min(part.most * part.unit, 20 * 86_400)


def test_parts_of_pauses_come_by_their_shares() -> None:
    counts = np.bincount(pause_parts()) / SLOTS
    assert counts == pytest.approx([part.share for part in PAUSES], abs=1e-5)


def test_the_model_meets_the_published_shares_of_pauses() -> None:
    within = {60: 0.0, 120: 0.0}
    for number, part in enumerate(PAUSES):
        table = pause_seconds()[number * SLOTS : (number + 1) * SLOTS]
        for limit in within:
            within[limit] += part.share * float((table < limit).mean())
    assert within[60] == pytest.approx(0.711, abs=0.002)  # published: 0.69
    assert within[120] == pytest.approx(0.752, abs=0.002)  # published: 0.76


@pytest.mark.parametrize("before", range(4))
def test_kinds_follow_by_the_rows_of_the_chain(before: int) -> None:
    row = next_kinds()[before * SLOTS : (before + 1) * SLOTS]
    whole = sum(NEXT_KIND[before])
    assert np.bincount(row, minlength=4) / SLOTS == pytest.approx(
        [share / whole for share in NEXT_KIND[before]], abs=1e-5
    )


def test_characters_are_the_smallest_number_that_enough_have_at_most() -> None:
    table = char_counts()
    points = dict(CHARS)
    for slot in range(0, 53_000, 97):  # where the points are consecutive numbers
        quantile = (slot + 0.5) / SLOTS * 1_000_000
        shares = [points[n] for n in range(50)]
        assert table[slot] == bisect_left(shares, quantile)
    assert (int(table[0]), int(table.max())) == (0, 4495)
    assert table.mean() == pytest.approx(30.75, abs=0.5)  # of the published distribution


@pytest.mark.parametrize("members", [2, 3, 4, 10, 11, 30, 31, 252])
def test_authors_write_by_rank(members: int) -> None:
    row = next(each for each in PARTICIPATION if members <= each.members)
    shares = np.bincount(authors(members)) / SLOTS
    assert len(shares) == members
    assert shares[:3] == pytest.approx(row.ranked[:members], abs=2e-5)
    if members > 3:
        assert shares[3:] == pytest.approx([row.others / (members - 3)] * (members - 3), abs=2e-5)


@pytest.mark.parametrize("members", [1, 253])
def test_groups_have_limits(members: int) -> None:
    with pytest.raises(ValueError, match="2 to 252"):
        authors(members)
