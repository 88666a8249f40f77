"""Tables for people."""

from __future__ import annotations

from pathlib import Path

from tests.lab.studies.retention.small_pools import SWEPT, pool_of

from linnet.lab.studies.retention.grids import relays_grid, rooms_grid, sweep_grid
from linnet.lab.studies.retention.metrics import ALL, trade_of
from linnet.lab.studies.retention.parameters import RetentionParameters
from linnet.lab.studies.retention.recommending import recommend

TRADE = trade_of(pool_of(within=(10, 40, 80, 80)), ALL, 3, SWEPT)
ADVICE = recommend(TRADE, 0.99)


def test_relays_multiply_what_is_held_and_share_the_people() -> None:
    grid = relays_grid([ADVICE], (2, 0, 1, 1))
    # Relays, retention, pairs served (owed, all), undelivered, event-hours in sum, by default, people.
    assert [row[1:] for row in grid.rows] == [
        (0, None, 0.1, 0.2, 0.18, 0.0, 0.0, None),
        (1, "30 d", 0.8, 0.55, 0.08, 0.4, 0.4, 2.0),
        (2, "30 d", 0.8, 0.55, 0.08, 0.8, 0.8, 1.0),
    ]


def test_classes_tell_what_was_left_out_and_the_border() -> None:
    grid = rooms_grid([ADVICE], RetentionParameters(chats=Path("chats"), lively=90_000), 1_234)
    assert grid.rows == (("all rooms", 2, 4, 2.0, 50, 200, 0.5, 0.8),)
    assert "at most 90 s" in grid.note
    assert "1,234 chats are in no class" in grid.note


def test_the_sweep_has_a_row_for_every_retention() -> None:
    grid = sweep_grid([TRADE, TRADE])
    assert [row[1] for row in grid.rows] == ["none", "1 h", "30 d", "unlimited"] * 2
    assert grid.rows[1][2:8] == (0.4, 0.5, 0.35, 0.1, 0.2, 1.25)
