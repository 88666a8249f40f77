"""The tables of the report."""

from __future__ import annotations

from msgspec.structs import replace

from linnet.lab.studies.groups import tables
from linnet.lab.studies.groups.authors import Seen
from linnet.lab.studies.groups.targets import targets
from linnet.lab.studies.groups.view import View


def test_bytes_stand_beside_published_ones(view: View) -> None:
    grid = tables.sent(view)
    row = next(row for row in grid.rows if row[:2] == ("update", 8))
    assert row == ("update", 8, 2232, 1791, 441, 4711, 2389, 0.93)
    assert len(grid.rows) == 6 * 3


def test_times_have_their_parts_and_raw_measurements_their_ends(view: View) -> None:
    grid = tables.spent(view)
    assert {len(row) for row in grid.rows} == {len(grid.columns)}
    assert {row[2] for row in grid.rows} == {"sender", "recipient", "newcomer"}
    seen = {("update", 8, "sender"): Seen(2, 5_000_000, 2_000_000, 3_000_000)}
    raw = tables.spent(replace(view, authors=seen))
    (row,) = [row for row in raw.rows if row[:3] == ("update", 8, "sender")]
    assert row[-3:] == (2.388, 2.0, 3.0)


def test_calls_batches_growth_and_targets_are_told(view: View) -> None:
    calls = {row[:3]: row[3:] for row in tables.called(view).rows}
    assert calls["update", 8, "sender"][:4] == (38, 7, 2, 7)
    rows = {row[:2]: row for row in tables.batches(view).rows}
    assert rows[8, "one by one"][2] == 9
    assert rows[8, "at once"][2] == round((3 + 3 + 7) / 3, 1)
    assert rows[8, "at once"][-1] is not None
    assert rows[4, "at once"][-1] is None
    growth = tables.growths(view)
    assert {row[0] for row in growth.rows} == {"create", "add", "remove", "update"}
    assert {len(row) for row in growth.rows} == {len(growth.columns)}
    verdicts = {row[3] for row in tables.reached(targets(view)).rows}
    assert "reached" in verdicts <= {"reached", "missed"}
