"""The tables of the source, with our numbers."""

from __future__ import annotations

import pytest

from linnet.lab.studies.streams import tables
from linnet.lab.studies.streams.view import View


def test_table_52_has_ours_and_theirs(view: View, cut: View) -> None:
    grid = tables.delays(view)
    assert len(grid.rows) == 21
    rows = {(row[0], row[1]): row for row in grid.rows}
    assert rows[2048, "counters"][2:7] == (10, 288.0, 288.4, 288.9, 0.3)
    assert rows[2048, "counters"][8:] == (282, 288, 296, 5)
    assert rows[2048, "naive, throttled"][7] == pytest.approx(288.45 - 202.45, abs=0.1)
    assert rows[32, "half near"][8:] == (None, None, None, None)
    assert "+14 at 64" in grid.note
    assert len(tables.delays(cut).rows) == 2


def test_table_53_has_means_over_sizes(view: View) -> None:
    grid = tables.accuracy(view)
    counter = [row for row in grid.rows if row[0] == "counters"]
    assert [row[1] for row in counter] == [32, 64, 128, 256, 512, 1024, 2048, "mean", "mean from 64"]
    assert counter[0][6:] == (131, 4.5)
    assert "3.39 %" in grid.note


def test_table_54_puts_ours_before_the_literature(view: View) -> None:
    rows = tables.penalties(view).rows
    assert [row[0] for row in rows[:3]] == ["ours: counters", "ours: naive", "ours: half near"]
    assert rows[0][3] == "3.82 (at 1024)"
    assert len(rows) == 3 + 14


def test_growth_looks_beyond_the_runs(view: View, cut: View) -> None:
    grid = tables.growth(view)
    assert grid.columns[4:] == ("at 6400", "at 10000")
    assert grid.rows[0][:3] == ("counters", 2.45, 26.0)
    assert grid.rows[-1][0] == "shortest paths in graphs of that size"
    assert tables.growth(cut).rows[0][0] == "counters"
