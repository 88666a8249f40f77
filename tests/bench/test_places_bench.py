"""The measurements of places run, and what is compared follows from them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bench.place_fleet import bare_star, place, spread
from bench.results import Comparison, Measure, Plan
from bench.targets import compare
from bench.workers.talk import Go

from bench import channel, place_members, place_texts, places


def test_texts_and_tests_are_measured_beside_their_like(tmp_path: Path) -> None:
    found = channel.measure(Plan(1, 0.001, True, tmp_path))
    names = {each.name for each in found}
    assert {place_texts.PARSE, place_texts.RENDER, place_members.TESTS, place_members.QUERY} <= names
    assert all(each.median is not None and each.median > 0 for each in found if each.unit == "1/s")


def test_changes_are_as_many_as_asked_for_and_in_the_order_of_their_keys() -> None:
    rows = list(place_members.changes(1000))
    assert len(rows) == 1000
    assert rows == sorted(rows, key=lambda row: row[:2])
    parts = [row[3] for row in rows if not row[4]]
    assert parts == list(range(len(parts))), "each removal has a generation of its own, and none is missing"


def test_a_host_is_heard_by_every_guest_and_bare_links_carry_the_same() -> None:
    async def both() -> tuple[float, float]:
        async with place(3, 64) as fleet:
            heard = await fleet.run(Go(32, 4))
        async with bare_star(3, 64) as fleet:
            carried = await fleet.run(Go(32, 1))
        return heard.deliveries_per_second, carried.deliveries_per_second

    assert min(asyncio.run(both())) > 0
    assert (spread(1), spread(3), spread(50)) == ([1], [2, 1], [25, 25])


def test_what_is_to_be_reached() -> None:
    measures = [
        Measure(places.SECTION, places.name_of(1, places.SMALL), "deliveries/s", (6_000.0,)),
        Measure(places.SECTION, places.STREAM, "deliveries/s", (10_000.0,)),
        Measure(places.SECTION, places.megabytes_name(50), "MB/s", (50.0,)),
        Measure(places.SECTION, places.bare_megabytes_name(50), "MB/s", (500.0,)),
        Measure(channel.SECTION, place_members.TESTS, "1/s", (900.0,)),
        Measure(channel.SECTION, place_members.QUERY, "1/s", (300.0,)),
    ]
    found = compare(measures)
    assert found == [
        Comparison("places: host → 1 / stream one by one", 60.0, 50.0, "%", True),
        Comparison("places: host → 50, bytes / bare TLS", 10.0, 25.0, "%", True),
        Comparison("channel: membership tests / SQLite queries", 300.0, 200.0, "%", True),
    ]
    assert [each.reached for each in found] == [True, False, True]
