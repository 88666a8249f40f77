"""Quantiles by nearest rank."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.quantiles import quantile, rank, within_ms


@pytest.mark.parametrize(
    ("share", "count", "wanted"),
    [(0.5, 1, 1), (0.5, 2, 1), (0.5, 3, 2), (0.99, 100, 99), (0.99, 101, 100), (0.55, 100, 55), (0.0, 9, 1)],
)
def test_ranks(share: float, count: int, wanted: int) -> None:
    assert rank(share, count) == wanted


@given(st.lists(st.integers(0, 50), min_size=1), st.integers(1, 100))
def test_a_quantile_is_the_smallest_that_covers_its_share(values: list[int], percent: int) -> None:
    found = quantile(sorted(values), percent / 100)
    assert found is not None

    def covered(limit: int) -> Fraction:
        return Fraction(sum(value <= limit for value in values), len(values))

    assert found == min(value for value in values if covered(value) >= Fraction(percent, 100))


def test_nothing_has_no_quantile() -> None:
    assert quantile([], 0.5) is None


@given(st.integers(0, 10**12))
def test_what_is_told_as_within_is_never_less_than_it_took(microseconds: int) -> None:
    told = Fraction(str(within_ms(microseconds))) * 1000
    assert microseconds <= told < microseconds + (1000 if microseconds > 999_000 else 100)


def test_what_is_told_has_four_digits() -> None:
    assert [within_ms(each) for each in (0, 1, 512_301, 999_900, 999_901, 1_000_000, 1_000_001)] == [
        0.0,
        0.1,
        512.4,
        999.9,
        1000,
        1000,
        1001,
    ]
