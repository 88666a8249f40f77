"""The measurements of rooms run, and what is compared follows from them."""

from __future__ import annotations

from pathlib import Path

from bench.long_room import costs
from bench.results import Comparison, Measure
from bench.targets import compare

from bench import rooms


def test_a_relay_a_return_and_a_long_room_are_measured(tmp_path: Path) -> None:
    assert rooms.ingested_per_second(tmp_path, 100) > 0
    assert list(tmp_path.iterdir()) == []
    assert rooms.caught_up(100)[0] > 0
    assert all(cost > 0 for cost in costs(200))


def test_what_is_to_be_reached() -> None:
    measures = [
        Measure(rooms.SECTION, rooms.CHECKS, "1/s", (10_000.0,)),
        Measure(rooms.SECTION, rooms.INGEST, "events/s", (4_000.0,)),
        Measure(rooms.SECTION, rooms.EARLY, "µs", (100.0,)),
        Measure(rooms.SECTION, rooms.LATE, "µs", (210.0,)),
    ]
    found = compare(measures)
    assert found == [
        Comparison("rooms: durable relay / signature checks", 40.0, 30.0, "%", True),
        Comparison("rooms: cost at the end", 2.1, 2.0, "x", False),
    ]
    assert [each.reached for each in found] == [True, False]
