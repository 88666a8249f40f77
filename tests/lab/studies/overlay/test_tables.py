"""Tables have as many cells as columns."""

from __future__ import annotations

from linnet.lab.studies.overlay import tables
from linnet.lab.studies.overlay.view import View


def test_every_row_is_whole(view: View) -> None:
    grids = [
        tables.attacks(view),
        tables.filters(view, "drawn"),
        tables.rings(view),
        tables.living(view),
        tables.mending(view),
        tables.choosing(view),
    ]
    for grid in grids:
        assert grid.rows
        assert {len(row) for row in grid.rows} == {len(grid.columns)}
    assert tables.short(None) is None
    assert tables.choosing(view).rows[0] == ("delay of first copies, ms", 90, 90)
    sizes = [int(str(row[0])) for row in tables.rings(view).rows]
    assert sizes == sorted(sizes)
