"""Exact integer bins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.lab.bins import NEVER, bin_of, count_bins, ecdf, lower, quantile, share_never, share_within, total

durations = st.integers(0, 2**50)


def binned(*values: int) -> list[int]:
    return [int(each) for each in bin_of(np.array(values, dtype=np.int64))]


def test_short_durations_have_a_bin_each() -> None:
    assert binned(*range(64)) == list(range(64))
    assert binned(64, 65, 66) == [64, 64, 65]


def test_what_never_came_has_a_bin_of_its_own() -> None:
    assert binned(-1, -700) == [NEVER, NEVER]


@given(durations)
def test_a_bin_begins_at_its_lower_end_and_is_narrow(duration: int) -> None:
    (bin,) = binned(duration)
    assert lower(bin) <= duration < lower(bin + 1)
    assert binned(lower(bin)) == [bin]
    assert (lower(bin + 1) - lower(bin)) * 32 <= max(lower(bin), 32)


@given(durations, durations)
def test_bins_are_in_the_order_of_durations(one: int, other: int) -> None:
    first, second = binned(min(one, other), max(one, other))
    assert first <= second


def test_shares_and_quantiles_are_over_all_that_was_counted() -> None:
    bins = count_bins(np.array([0, 5, 5, 7, -1, -1, -1, -1, -1, -1], dtype=np.int64))
    assert bins == {NEVER: 6, 0: 1, 5: 2, 7: 1}
    assert total(bins) == 10
    assert share_never(bins) == pytest.approx(0.6)
    assert share_within(bins, 5) == pytest.approx(0.3)
    assert quantile(bins, 0.1) == 0
    assert quantile(bins, 0.4) == 7
    assert quantile(bins, 0.5) is None
    assert ecdf(bins) == ([0, 5, 7], [0.1, pytest.approx(0.3), 0.4])


def test_nothing_counted_is_no_share() -> None:
    assert (share_never({}), share_within({}, 1), ecdf({})) == (0.0, 0.0, ([], []))
