"""The line over log2 of the size, against numpy and a printed table."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.lab.errors import LabError
from linnet.lab.metrics.growth import fit_log

SIZES = [32, 64, 128, 256, 512, 1024, 2048]


def test_a_line_is_found_again() -> None:
    fit = fit_log(SIZES, [7 + 25 * power for power in range(5, 12)])
    assert (fit.intercept, fit.slope, fit.r_squared) == pytest.approx((7, 25, 1))
    assert fit.at(4096) == pytest.approx(7 + 25 * 12)


def test_the_growth_of_a_printed_table() -> None:
    """Juslenius 2021, table 5.2, the WebRTC means."""
    fit = fit_log(SIZES, [137, 161, 184, 211, 241, 266, 288])
    assert (fit.intercept, fit.slope) == pytest.approx((6.9, 25.71), abs=0.05)
    assert fit.r_squared == pytest.approx(0.9985, abs=0.0001)


@given(st.lists(st.floats(0, 1e4), min_size=7, max_size=7))
def test_numpy_finds_the_same(values: list[float]) -> None:
    fit = fit_log(SIZES, values)
    slope, intercept = np.polyfit(np.log2(SIZES), values, 1)
    assert (fit.slope, fit.intercept) == pytest.approx((float(slope), float(intercept)), abs=1e-6)
    assert -1e-9 <= fit.r_squared <= 1 + 1e-9


def test_no_growth_is_fully_explained() -> None:
    assert fit_log([2, 4], [5, 5]).r_squared == 1


@pytest.mark.parametrize(
    ("sizes", "values", "words"),
    [([1, 2], [1], "pair up"), ([0, 2], [1, 2], "logarithm"), ([4, 4], [1, 2], "two different")],
)
def test_what_has_no_line_is_refused(sizes: list[float], values: list[float], words: str) -> None:
    with pytest.raises(LabError, match=words):
        fit_log(sizes, values)
