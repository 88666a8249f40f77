"""Heat maps."""

from __future__ import annotations

import numpy as np
import pytest

from linnet.lab.errors import LabError
from linnet.lab.report.canvas import style
from linnet.lab.report.heat import matrix


def test_few_cells_say_their_numbers_and_missing_ones_nothing() -> None:
    with style():
        figure = matrix(
            [[1.0, 250.4], [np.nan, 4.0]],
            title="Delays",
            value_label="one-way delay",
            unit="ms",
            x_names=["a", "b"],
            y_names=["c", "d"],
        )
    axes, bar = figure.axes
    assert [text.get_text() for text in axes.texts] == ["1", "250", "4"]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["a", "b"]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["c", "d"]
    assert bar.get_ylabel() == "one-way delay (ms)"


def test_a_large_matrix_is_drawn_as_means_of_blocks_and_says_so() -> None:
    cells = np.arange(900 * 900, dtype=np.float64).reshape(900, 900)
    cells[0, 0] = np.nan
    with style():
        figure = matrix(cells, title="Pairs", value_label="count")
    drawn = np.asarray(figure.axes[0].images[0].get_array())
    assert drawn.shape == (300, 300)
    assert drawn[0, 0] == pytest.approx(np.nanmean(cells[:3, :3]))
    assert drawn[-1, -1] == pytest.approx(cells[-3:, -3:].mean())
    assert "mean of 3 by 3 cells" in figure.get_supxlabel()


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(LabError, match="shape"):
        matrix(np.zeros(3), title="t", value_label="v")
    with pytest.raises(LabError, match="names"):
        matrix([[1.0, 2.0]], title="t", value_label="v", x_names=["only one"])
