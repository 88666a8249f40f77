"""Trade-offs with named choices."""

from __future__ import annotations

from itertools import combinations

import pytest

from linnet.lab.errors import LabError
from linnet.lab.report.canvas import style
from linnet.lab.report.trade import Choice, trade_off

CURVES = {
    f"{relays} relays": [
        Choice(10.0**power * relays, 1 - 0.5 / (power + relays), name)
        for power, name in enumerate(("1 h", "6 h", "1 d", "1 wk", "30 d", "for ever"), 1)
    ]
    for relays in (1, 2, 3)
}


def test_every_choice_is_named_and_no_name_covers_another() -> None:
    with style():
        figure = trade_off(CURVES, title="t", x_label="held", y_label="delivered", y_unit="share", log_x=True)
        (axes,) = figure.axes
        assert len(axes.texts) == 18
        boxes = [text.get_window_extent() for text in axes.texts]
    assert [pair for pair in combinations(boxes, 2) if pair[0].overlaps(pair[1])] == []
    inside = axes.get_window_extent()
    assert all(inside.x0 <= box.x0 and box.x1 <= inside.x1 for box in boxes)


def test_a_log_axis_refuses_zero() -> None:
    with pytest.raises(LabError, match="cannot show 0"):
        trade_off({"a": [Choice(0, 1, "none")]}, title="t", x_label="x", y_label="y", log_x=True)


def test_no_points_are_refused() -> None:
    with pytest.raises(LabError, match="no points"):
        trade_off({}, title="t", x_label="x", y_label="y")
