"""Tables about the overlays themselves."""

from __future__ import annotations

from msgspec.structs import replace

from linnet.lab.studies.streams import shapes
from linnet.lab.studies.streams.view import View


def test_overlays_tell_regularity_and_nearness(view: View) -> None:
    rows = {row[:2]: row for row in shapes.overlays(view).rows}
    assert rows["counters", 64][2:4] == (100.0, "4-4")
    assert rows["naive", 64][2:4] == (98.44, "3-4")
    assert rows["counters", 64][4:6] == (6.25, round(100 * 3 / 63, 2))
    assert ("naive, all at once", 2048) in rows


def test_control_traffic_is_per_node(view: View) -> None:
    rows = {row[:2]: row for row in shapes.control(view).rows}
    assert rows["counters", 32][2:] == (10, 9.0, 4.0, 2.0, 10, 100.0, 132.4)
    assert ("naive, tracker goes on", 128) in rows


def test_redundancy_graphs_and_bounds(view: View) -> None:
    assert shapes.redundancies(view).rows[0][:4] == (4, 2, 2.048, 2.048)
    assert len(shapes.graphs(view).rows) == 21
    bounds = shapes.bounds(view)
    assert bounds.rows[0] == (4, "upper bound", 8, 8, 9, 10, 11, 11, 12, 13, 14, 16)
    assert bounds.rows[1][2:5] == (5, 6, 7)
    assert bounds.rows[3][2:] == (None,) * 10


def test_randomness_is_empty_if_nothing_was_drawn(view: View) -> None:
    assert shapes.randomness(view).rows[0][:2] == (8, 7)
    assert shapes.randomness(replace(view, randomness=None)).rows == ()
