"""Repeats of a run as one line of a table."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.lab.errors import LabError
from linnet.lab.metrics.repeats import spread


def test_a_printed_row_comes_out() -> None:
    """Juslenius 2021, table 5.2, 32 nodes: 127 to 160 ms are 33 ms or 26.0 %."""
    found = spread([127.0, 151.0, 160.0])
    assert (found.lowest, found.mean, found.highest, found.range) == (127, 146, 160, 33)
    assert found.range_percent == pytest.approx(26.0, abs=0.05)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20))
def test_it_is_what_the_statistics_module_says(values: list[float]) -> None:
    found = spread(values)
    assert found.count == len(values)
    assert found.mean == pytest.approx(statistics.fmean(values), abs=1e-6)
    assert found.deviation == pytest.approx(statistics.stdev(values), rel=1e-6, abs=1e-6)
    assert found.error == pytest.approx(found.deviation / len(values) ** 0.5)


def test_a_single_run_has_no_deviation() -> None:
    assert spread([3.0]).deviation == spread([3.0]).error == spread([3.0]).range == 0


def test_a_range_over_nothing_has_no_percentage() -> None:
    assert spread([0.0, 1.0]).range_percent is None


def test_no_runs_are_refused() -> None:
    with pytest.raises(LabError, match="no repeats"):
        spread([])
