"""Every plot comes out as SVG, the same each time."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from linnet.lab.report import plots

DRAWN: dict[str, Callable[[], str]] = {
    "ecdf": lambda: plots.ecdf({"a": ([0, 10], [0.5, 0.9])}, title="T", x_label="time"),
    "ecdf_panels": lambda: plots.ecdf_panels(
        {"p": {"a": ([0, 10], [0.5, 0.9])}, "q": {"a": ([5], [1.0])}}, title="T", x_label="time"
    ),
    "lines": lambda: plots.lines(
        [plots.Line(label="a", x=[1, 2], y=[1, 2])], title="T", x_label="x", y_label="y"
    ),
    "bars": lambda: plots.bars({"g": {"a": 0.5, "b": 0.25}}, title="T", y_label="y"),
    "scatter": lambda: plots.scatter({"a": ([1, 2], [1, 2])}, title="T", x_label="x", y_label="y"),
    "matrix": lambda: plots.matrix([[1.0, 2.0]], title="T", value_label="v"),
    "trade_off": lambda: plots.trade_off(
        {"a": [plots.Choice(1, 2, "one")]}, title="T", x_label="x", y_label="y"
    ),
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_plot_is_svg_and_the_same_each_time(name: str) -> None:
    svg = DRAWN[name]()
    assert svg == DRAWN[name]()
    assert next(iter(ElementTree.fromstring(svg))).text == "T"
    assert svg.count("http") == 2  # the two names of SVG itself; nothing is fetched


def test_every_plot_is_tried_here() -> None:
    assert set(DRAWN) == {name for name in plots.__all__ if name.islower()}
