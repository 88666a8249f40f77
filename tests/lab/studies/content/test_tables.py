"""Tables: published and ours in the same cells."""

from __future__ import annotations

from linnet.lab.studies.content import tables
from linnet.lab.studies.content.view import View


def test_tables_have_published_cells_and_ours_beside_them(view: View) -> None:
    grid = tables.duplicated(view)
    assert grid.columns[:3] == ("variant", "normal", "normal, ours")
    assert grid.rows[0][:3] == ("base-unreliable", "16.97", "0.89")
    assert grid.rows[4][:3] == ("fast", "none", "0.89")
    costs = {row[0]: row for row in tables.costs(view).rows}
    assert costs["base-reliable"][5:7] == ("310 / 20.21", "3 / 0.04")
    assert tables.latencies(view).rows[1][1:3] == ("254 / 599", "70 / 140")


def test_every_run_is_in_a_row(view: View) -> None:
    grid = tables.networks(view)
    assert len(grid.rows) == len(view.runs())
    assert all(len(row) == len(grid.columns) for row in grid.rows)
    assert (250, "fault", "fast", 112, 0, 0.89, 70.0, 140.0) in grid.rows


def test_stages_and_the_long_run_have_tables(view: View) -> None:
    rows = {row[:2]: row[2:] for row in tables.replication(view).rows}
    assert rows[2, 3] == (0, 0.89, 330, 70.0, 245, 50.0, 19.0, 0.12, 295, 9.0)
    assert len(rows) == 16
    assert tables.long_run(view).rows == (
        ("base-reliable", "before", 112, 0, 0, 50.0),
        ("base-reliable", "after", 112, 0, 0, 25.0),
    )
