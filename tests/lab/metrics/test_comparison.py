"""Percentages, errors of estimates and relative delays, against printed tables."""

from __future__ import annotations

import pytest

from linnet.lab.errors import LabError
from linnet.lab.metrics.comparison import delay_penalty, mape, percent_difference, percent_error

SIZES = (32, 64, 128, 256, 512, 1024, 2048)
ESTIMATED = (131, 159, 182, 211, 240, 263, 287)
MEASURED = (137, 161, 184, 211, 241, 266, 288)
"""Juslenius 2021, table 5.3, the WebRTC columns."""


def test_a_difference_has_the_sign_of_what_was_measured() -> None:
    assert percent_difference(110, 100) == 10
    assert percent_difference(90, 100) == -10
    assert percent_difference(-90, -100) == 10
    assert percent_difference(1, 0) is None


@pytest.mark.parametrize(
    ("estimated", "measured", "printed"), [(168, 172, 2.4), (172, 177, 2.9), (184, 189, 2.7), (189, 194, 2.6)]
)
def test_errors_are_in_percent_of_the_estimate(estimated: int, measured: int, printed: float) -> None:
    assert round(percent_error(measured, estimated), 1) == printed


def test_the_mean_error_of_a_printed_table_comes_out() -> None:
    pairs = list(zip(MEASURED, ESTIMATED, strict=True))
    assert mape(pairs) == pytest.approx(1.24, abs=0.03)
    assert mape(pairs[1:]) == pytest.approx(0.70, abs=0.02)


def test_the_relative_delay_of_a_printed_table_comes_out() -> None:
    found = [round(delay_penalty(mean, 68.64), 2) for mean in MEASURED]
    assert found == [2.0, 2.35, 2.68, 3.07, 3.51, 3.88, 4.20]


def test_what_has_no_meaning_is_refused() -> None:
    with pytest.raises(LabError, match="estimate of 0"):
        percent_error(1, 0)
    with pytest.raises(LabError, match="nothing"):
        mape([])
    with pytest.raises(LabError, match="above 0"):
        delay_penalty(100, 0)
