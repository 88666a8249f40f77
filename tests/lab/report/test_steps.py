"""Distributions over all that was sent: 0 is shown, and so is what never came."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from linnet.lab import bins
from linnet.lab.errors import LabError
from linnet.lab.report.canvas import style
from linnet.lab.report.steps import Steps, ecdf, ecdf_panels

SENT = np.array([0, 0, 50, 5_000, 90_000, -1, -1, -1], dtype=np.int64)
"""Eight events: two at once, three later, three never."""
STEPS: Steps = bins.ecdf(bins.count_bins(SENT))


def draw(series: dict[str, Steps], *, log_x: bool = True) -> Figure:
    with style():
        return ecdf(series, title="Delays", x_label="time", log_x=log_x)


def curve(axes: Axes, name: str) -> tuple[list[float], list[float]]:
    (line,) = [line for line in axes.get_lines() if line.get_label() == name]
    return list(np.asarray(line.get_xdata())), list(np.asarray(line.get_ydata()))


def test_a_curve_runs_to_the_end_of_the_axis_at_the_share_that_came() -> None:
    (axes,) = draw({"P2P": STEPS}).axes
    places, heights = curve(axes, "P2P")
    assert places[-1] == axes.get_xlim()[1] > 90_000
    assert heights == [0, 0.25, 0.375, 0.5, 0.625, 0.625]
    assert [text.get_text() for text in axes.texts] == ["38 % never"]


def test_zero_stands_apart_on_a_log_axis() -> None:
    (axes,) = draw({"P2P": STEPS}).axes
    places, _ = curve(axes, "P2P")
    ticks = dict(zip(axes.get_xticks(), [tick.get_text() for tick in axes.get_xticklabels()], strict=True))
    assert ticks.pop(places[0]) == "0"
    assert places[0] == places[1] < min(ticks)
    assert all(name != "0" for name in ticks.values())


def test_without_a_zero_there_is_no_strip_for_it() -> None:
    (axes,) = draw({"a": ([20, 400], [0.5, 1.0])}).axes
    assert "0" not in [tick.get_text() for tick in axes.get_xticklabels()]
    assert axes.texts[:] == []


def test_a_linear_axis_begins_at_zero() -> None:
    (axes,) = draw({"P2P": STEPS}, log_x=False).axes
    assert axes.get_xlim()[0] == 0
    assert curve(axes, "P2P")[0][:2] == [0, 0]
    assert axes.get_xlabel() == "time (ms)"


def test_if_nothing_came_the_curve_stays_at_the_bottom() -> None:
    (axes,) = draw({"came": STEPS, "nothing": ([], [])}).axes
    assert set(curve(axes, "nothing")[1]) == {0}
    assert "100 % never" in [text.get_text() for text in axes.texts]


def test_what_a_curve_lacks_can_have_another_name() -> None:
    with style():
        figure = ecdf({"a": ([1], [0.75])}, title="t", x_label="time", missing="stay empty")
    assert [text.get_text() for text in figure.axes[0].texts] == ["25 % stay empty"]


def test_ends_close_to_each_other_are_told_apart() -> None:
    (axes,) = draw({"a": ([1], [0.70]), "b": ([1], [0.705]), "c": ([1], [0.71])}).axes
    heights = sorted(text.xyann[1] for text in axes.texts)  # type: ignore[attr-defined]
    assert len(heights) == 3
    assert min(np.diff(heights)) > 0.03


def test_panels_share_axes_and_looks_and_name_every_series() -> None:
    with style():
        figure = ecdf_panels(
            {
                "margin 1": {"P2P": STEPS},
                "margin 2": {"with relays": STEPS, "P2P": STEPS},
                "margin 3": {"P2P": STEPS},
            },
            title="Delays",
            x_label="time",
        )
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title(loc="left") for axes in shown] == ["margin 1", "margin 2", "margin 3"]
    assert len({axes.get_xlim() for axes in shown}) == 1
    colours = [line.get_color() for axes in shown for line in axes.get_lines() if line.get_label() == "P2P"]
    assert len(colours) == 3
    assert len(set(colours)) == 1
    (legend,) = figure.legends
    assert sorted(text.get_text() for text in legend.get_texts()) == ["P2P", "with relays"]


def test_no_series_are_refused() -> None:
    with pytest.raises(LabError, match="no series"):
        draw({})
