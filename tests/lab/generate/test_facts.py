"""Numbers that were copied are at least whole."""

from __future__ import annotations

from itertools import pairwise

import pytest

from linnet.lab.generate.facts import CHARS, KINDS, LARGEST, NEXT_KIND, PARTICIPATION, PAUSES


def test_shares_sum_to_one() -> None:
    assert sum(part.share for part in PAUSES) == pytest.approx(1)
    for row in PARTICIPATION:
        assert sum(row.ranked) + row.others == pytest.approx(1)


def test_parts_of_pauses_meet() -> None:
    ends = [(part.least * part.unit, part.most * part.unit) for part in PAUSES]
    assert ends[0][0] == 0
    assert all(before[1] == after[0] for before, after in pairwise(ends))


def test_rows_of_the_chain_are_nearly_whole() -> None:
    """The source lists four kinds of more; what leads to the others is missing."""
    assert len(NEXT_KIND) == len(KINDS)
    assert all(0.99 < sum(row) < 1 for row in NEXT_KIND)


def test_groups_are_listed_up_to_the_largest() -> None:
    sizes = [row.members for row in PARTICIPATION]
    assert sizes == sorted(sizes)
    assert (sizes[0], sizes[-1]) == (2, LARGEST)
    for row in PARTICIPATION:
        assert list(row.ranked) == sorted(row.ranked, reverse=True)


def test_the_distribution_of_characters_rises_to_a_million() -> None:
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(CHARS))
    assert CHARS[0][0] == 0
    assert CHARS[-1][1] == 1_000_000
