"""Lines, growth, and what is read from tables."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from linnet.lab.errors import LabError
from linnet.lab.stages import schema_of
from linnet.lab.studies.groups.metrics import Outcomes, Time, fit_line, growth_of, read_outcomes
from linnet.lab.tables import GROUP_COUNTS, GROUP_TIMES

POINTS = st.lists(
    st.tuples(st.integers(1, 1000), st.floats(-1e6, 1e6)), min_size=3, max_size=20, unique_by=lambda p: p[0]
)


@given(POINTS)
def test_a_line_is_that_of_least_squares(points: list[tuple[int, float]]) -> None:
    sizes, values = [float(x) for x, _ in points], [y for _, y in points]
    fit = fit_line(sizes, values)
    slope, intercept = np.polyfit(sizes, values, 1)
    scale = max(1.0, *(abs(value) for value in values))
    assert fit.slope == pytest.approx(slope, abs=1e-6 * scale)
    assert fit.intercept == pytest.approx(intercept, abs=1e-4 * scale)
    assert fit.r_squared <= 1 + 1e-9


def test_a_line_needs_two_sizes() -> None:
    with pytest.raises(LabError, match="two different sizes"):
        fit_line([8, 8], [1, 2])
    assert fit_line([1, 2, 3], [5, 5, 5]).r_squared == 1


def test_growth_tells_a_line_from_a_square() -> None:
    sizes = (8, 16, 32, 64)
    line = growth_of({size: 100.0 + 50 * size for size in sizes})
    square = growth_of({size: float(size * size) for size in sizes})
    assert line is not None
    assert square is not None
    assert not line.is_superlinear
    assert line.line.r_squared == pytest.approx(1)
    assert square.is_superlinear
    assert square.is_steep
    assert not line.is_steep
    assert square.power == pytest.approx(2)
    assert line.line.at(10) == pytest.approx(600)
    assert growth_of({8: 1.0, 16: 2.0}) is None


def test_times_are_of_one_client_and_one_operation() -> None:
    runs = [
        {("recipient", "take"): Time(4, 2, 40, 8_000_000), ("recipient", "check"): Time(4, 2, 20, 800_000)}
    ]
    loaded: list[dict[tuple[str, str], Time]] = [
        run | {("machine", "load"): Time(1, 2, 1, 1500)} for run in runs
    ]
    outcomes = Outcomes({}, {("update", "single", 8): loaded})
    both = outcomes.cpu("update", 8, "recipient", ("take", "check"))
    assert both is not None
    assert both.mean == pytest.approx(1.1)
    assert outcomes.each("update", 8, "recipient", ("take",), "single") == pytest.approx(200)
    assert outcomes.each("update", 8, "recipient", ("check", "take"), "single") == pytest.approx(440)
    assert outcomes.cpu("update", 9, "recipient") is None
    assert outcomes.each("update", 9, "recipient", ("take",), "single") is None
    assert outcomes.load() == (1.5, 1.5)
    assert Outcomes({}, {}).load() is None


def test_rows_are_gathered_by_case_and_repeat(spark: SparkSession) -> None:
    case = ("update", "single", 1, 8)
    counted = [(*case, repeat, "all", "body_bytes", 100 + repeat) for repeat in (1, 0)]
    timed = [(*case, 0, "sender", "make", 1, 1, 5), (*case, 0, "machine", "load", 1, 1, 900)]
    outcomes = read_outcomes(
        spark.createDataFrame(counted, schema_of(GROUP_COUNTS)),
        spark.createDataFrame(timed, schema_of(GROUP_TIMES)),
    )
    assert outcomes.count("update", 8, "body_bytes") == 100
    assert outcomes.count("update", 16, "body_bytes") is None
    assert outcomes.differing() == [("update", "single", 1, 8)]
    assert outcomes.sizes("update") == [8]
    assert outcomes.times["update", "single", 8][0]["sender", "make"] == Time(1, 1, 1, 5)
