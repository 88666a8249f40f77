"""Lines, bars and clouds: what is drawn is what was given."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_hex

from linnet.lab.errors import LabError
from linnet.lab.report.canvas import style
from linnet.lab.report.charts import Line, bars, lines, scatter

SIZES = [32, 64, 128]


def test_published_points_are_open_and_of_the_colour_of_their_series() -> None:
    measured = Line(label="counter", x=SIZES, y=[1, 2, 3], low=[0.5, 1, 2], high=[2, 3, 4])
    other = Line(label="naive", x=SIZES, y=[1, 1, 1])
    printed = Line(label="published", x=SIZES, y=[1, 2, 2.5], published=True, like="counter")
    with style():
        figure = lines([other, measured, printed], title="t", x_label="nodes", y_label="delay", log_x=True)
    (axes,) = figure.axes
    drawn = {line.get_label(): line for line in axes.get_lines()}
    assert drawn["published"].get_linestyle() == "None"
    assert drawn["published"].get_markerfacecolor() == "white"
    assert (
        drawn["published"].get_markeredgecolor() == drawn["counter"].get_color() != drawn["naive"].get_color()
    )
    assert list(np.asarray(drawn["counter"].get_ydata())) == [1, 2, 3]
    assert len(axes.collections) == 1  # the band of the only series that has one
    assert axes.get_ylim()[0] == 0
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["32", "64", "128"]


def test_a_unit_stands_at_its_axis() -> None:
    line = Line(label="a", x=[1, 10], y=[100, 10_000])
    with style():
        plain = lines([line], title="t", x_label="x", y_label="y", y_unit="ms")
        logs = lines([line], title="t", x_label="x", y_label="y", y_unit="ms", log_y=True)
    assert plain.axes[0].get_ylabel() == "y (ms)"
    assert logs.axes[0].get_ylabel() == "y"
    assert [tick.get_text() for tick in logs.axes[0].get_yticklabels()] == ["100 ms", "1 s", "10 s"]


def test_each_bar_says_its_height_and_a_missing_one_that_it_is_missing() -> None:
    with style():
        figure = bars(
            {"margin 1": {"P2P": 0.6, "with relays": 0.004}, "margin 2": {"P2P": 0.3, "with relays": None}},
            title="t",
            y_label="undelivered",
        )
    (axes,) = figure.axes
    assert [round(patch.get_height(), 3) for patch in axes.patches] == [0.6, 0.3, 0.004, 0]  # type: ignore[attr-defined]
    assert [text.get_text() for text in axes.texts] == ["60 %", "30 %", "0.4 %", "none"]
    hatches = {patch.get_hatch() for patch in axes.patches}
    assert len(hatches) == len({to_hex(patch.get_edgecolor()) for patch in axes.patches}) == 2


def test_bars_of_other_units_say_numbers() -> None:
    with style():
        figure = bars({"a": {"": 1234.567}}, title="t", y_label="held", unit="event-hours")
    assert [text.get_text() for text in figure.axes[0].texts] == ["1,230"]
    assert figure.axes[0].get_ylabel() == "held (event-hours)"
    assert figure.legends == []


def test_a_cloud_has_its_points_and_a_diagonal() -> None:
    with style():
        figure = scatter(
            {"chats": ([1, 10, 100], [2, 10, 90])},
            title="t",
            x_label="x",
            y_label="y",
            log_x=True,
            diagonal=True,
        )
    (axes,) = figure.axes
    assert np.asarray(axes.collections[0].get_offsets()).tolist() == [[1, 2], [10, 10], [100, 90]]
    assert [line.get_label() for line in axes.get_lines()] == ["equal"]


def test_a_log_axis_refuses_what_it_cannot_show() -> None:
    with style(), pytest.raises(LabError, match="log y axis cannot show 0"):
        lines([Line(label="a", x=[1, 2], y=[0, 1])], title="t", x_label="x", y_label="y", log_y=True)
    with style(), pytest.raises(LabError, match="cannot show nan"):
        scatter({"a": ([1.0], [float("nan")])}, title="t", x_label="x", y_label="y")


def test_empty_plots_are_refused() -> None:
    with pytest.raises(LabError, match="no series"):
        lines([], title="t", x_label="x", y_label="y")
    with pytest.raises(LabError, match="no bars"):
        bars({}, title="t", y_label="y")
    with pytest.raises(LabError, match="no points"):
        scatter({}, title="t", x_label="x", y_label="y")
