"""Exact integer bins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.quantiles import rank
from linnet.lab.bins import (
    NEVER,
    bin_of,
    count_bins,
    ecdf,
    lower,
    quantile,
    share_never,
    share_within,
    total,
    upper,
)

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
    assert binned(lower(bin)) == binned(upper(bin)) == [bin]
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


@given(st.lists(st.integers(-1, 100_000), min_size=1), st.integers(1, 100))
def test_a_quantile_is_never_better_than_the_data_and_off_by_less_than_a_bin(
    values: list[int], percent: int
) -> None:
    known = sorted(value if value >= 0 else 10**9 for value in values)
    exact = known[rank(percent / 100, len(known)) - 1]
    found = quantile(count_bins(np.array(values, dtype=np.int64)), percent / 100)
    if exact == 10**9:
        assert found is None
    else:
        (bin,) = binned(exact)
        assert found is not None
        assert exact <= found == upper(bin) < exact + (lower(bin + 1) - lower(bin))


@given(st.lists(st.integers(-1, 5_000), min_size=1), st.integers(0, 5_000))
def test_no_share_is_larger_than_that_of_the_data(values: list[int], limit: int) -> None:
    def true_share(within: int) -> float:
        return sum(0 <= value <= within for value in values) / len(values)

    bins = count_bins(np.array(values, dtype=np.int64))
    (bin,) = binned(limit)
    assert share_within(bins, limit) <= true_share(limit)
    assert share_within(bins, upper(bin)) == true_share(upper(bin))
    for duration, share in zip(*ecdf(bins), strict=True):
        assert share == true_share(duration)


def test_half_within_512_ms_is_not_said_of_what_took_longer() -> None:
    """448 of 1,000 took at most 512 ms, and the median lies in the bin that begins there."""
    bins = count_bins(np.array([500] * 447 + [512] + [515] * 552, dtype=np.int64))
    assert quantile(bins, 0.5) == 527
    assert share_within(bins, 512) == pytest.approx(0.447)
    assert share_within(bins, 527) == 1.0


def test_nothing_counted_is_no_share() -> None:
    assert (share_never({}), share_within({}, 1), quantile({}, 0.5), ecdf({})) == (0.0, 0.0, None, ([], []))
