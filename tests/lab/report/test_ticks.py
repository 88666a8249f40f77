"""Axes in words of people."""

from __future__ import annotations

from itertools import pairwise
from math import log10

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from linnet.lab.report.ticks import SHARE, dress, duration, number, share, time_ticks, with_unit


def test_a_long_axis_shows_the_times_that_people_know() -> None:
    names = [name for _, name in time_ticks(1, 700_000_000, 6.0)]
    assert {"1 ms", "1 s", "1 min", "1 h", "1 d"} <= set(names)
    assert {"1 s", "1 h"} <= {name for _, name in time_ticks(1, 700_000_000, 2.4)}


def test_a_short_range_is_cut_finer() -> None:
    assert [name for _, name in time_ticks(40, 450, 5.4)] == ["50 ms", "100 ms", "200 ms", "300 ms"]


@given(st.floats(0.5, 1e6), st.floats(1, 7), st.floats(1.5, 8))
def test_times_are_within_the_axis_and_apart(low: float, decades: float, inches: float) -> None:
    high = low * 10**decades
    ticks = [time for time, _ in time_ticks(low, high, inches)]
    assert ticks == sorted(ticks)
    assert all(low <= time <= high for time in ticks)
    gaps = [log10(b / a) / decades * inches for a, b in pairwise(ticks)]
    assert all(gap > 0.49 for gap in gaps)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 ms"), (63, "63 ms"), (1_600, "1.6 s"), (9_660_000, "2.68 h"), (90_000_000, "1.04 d")],
)
def test_durations(value: float, text: str) -> None:
    assert duration(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(2048, "2,048"), (0.25, "0.25"), (2e7, "20 M"), (1.5e9, "1.5 G"), (-3, "-3")]
)
def test_numbers(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 %"),
        (0.004, "0.4 %"),
        (0.123, "12 %"),
        (0.083, "8.3 %"),
        (0.996, "99.6 %"),
        (0.9999, "> 99.9 %"),
        (1, "100 %"),
    ],
)
def test_few_and_nearly_all_never_read_as_none_and_all(value: float, text: str) -> None:
    assert share(value) == text


def test_a_name_has_its_unit_once() -> None:
    assert with_unit("delay", "ms") == "delay (ms)"
    assert with_unit("delivered", SHARE) == "delivered"
    assert with_unit("a long name of an axis", "ms", 14) == "a long name of\nan axis (ms)"


def axis_texts(values: list[float], limits: tuple[float, float], unit: str, *, log: bool) -> list[str]:
    axes = Figure().subplots()
    axes.set_xscale("log" if log else "linear")
    axes.set_xlim(*limits)
    dress(axes.xaxis, values, unit, 6.0, log=log)
    return [label.get_text() for label in axes.get_xticklabels()]


def test_sizes_that_were_run_are_the_ticks() -> None:
    assert axis_texts([32, 64, 128], (30, 140), "", log=True) == ["32", "64", "128"]


def test_many_values_give_powers_of_ten() -> None:
    assert axis_texts([float(k) for k in range(1, 900)], (1, 1000), "", log=True) == [
        "1",
        "10",
        "100",
        "1,000",
    ]


def test_a_log_axis_within_one_power_still_has_ticks() -> None:
    assert axis_texts([], (150, 800), "", log=True) == ["200", "500"]


def test_shares_are_in_percent() -> None:
    assert axis_texts([], (0, 1), SHARE, log=False)[-1] == "100 %"
    assert axis_texts([], (0.001, 1), SHARE, log=True) == ["0.1 %", "1 %", "10 %", "100 %"]
