"""Ranges of messages: in order, from a byte on, with an end; what cannot be had is told."""

from __future__ import annotations

from tests.places.stage import Stage

from linnet.core.reasons import Reason
from linnet.delivery.items import Ended, Item
from linnet.places.config import PlacesConfig
from linnet.places.items import Body, Lost, PlaceItem, Said


def drain(stage: Stage, number: int) -> list[Item | PlaceItem]:
    found: list[Item | PlaceItem] = []
    while portion := stage.take(number):
        found += portion
        stage.consumed(number, len(portion))
    return found


def test_a_range_is_told_in_order_and_ends() -> None:
    stage = Stage()
    numbers = [stage.say(b"%d" % number) for number in range(5)]
    stage.watch(1, since=numbers[1], until=numbers[3])
    items = drain(stage, 1)
    assert [item.message for item in items if isinstance(item, Said)] == numbers[1:4]
    assert all(item.historic for item in items if isinstance(item, Said))
    assert items[-1] == Ended(None)
    stage.say(b"later")
    assert stage.take(1) == []


def test_the_newest_is_the_end_of_a_range_without_one_and_an_empty_range_ends_at_once() -> None:
    stage = Stage()
    numbers = [stage.say(b"x") for _ in range(3)]
    stage.watch(1, since=numbers[2], until=-1)
    assert [item.message for item in drain(stage, 1) if isinstance(item, Said)] == [numbers[2]]
    stage.watch(2, since=numbers[2] + 1, until=-1)
    assert stage.take(2) == [Ended(None)]
    assert stage.declined_watch(since=1, until=2, durable="x").reason is Reason.UNSUPPORTED


def test_a_long_body_comes_in_portions_and_from_any_byte_on() -> None:
    stage = Stage(PlacesConfig(watch_bytes=65_536))
    body = bytes(range(251)) * 2000
    number = stage.say(body)
    for watch, offset in enumerate((0, 1, 61_000, 61_440, 200_001, len(body) - 1, len(body), len(body) + 5)):
        stage.watch(watch, since=number, until=number, offset=offset)
        items = drain(stage, watch)
        data = [item for item in items if isinstance(item, Body)]
        assert b"".join(item.data for item in data) == body[offset:]
        assert data[-1].last
        assert (data[-1].offset, items[-1]) == (len(body), Ended(None))


def test_what_nobody_has_is_told_as_lost_in_its_turn() -> None:
    stage = Stage()
    numbers = [stage.say(b"%d" % number) for number in range(3)]
    fragments = stage.places._places[stage.place].parts.fragments
    row = fragments.get_at(numbers[1], 0)
    assert row is not None
    fragments.evicted(row)
    stage.watch(1, since=numbers[0], until=numbers[2])
    told = [item.message if isinstance(item, Said) else item for item in drain(stage, 1)]
    kept = [item for item in told if not isinstance(item, Body)]
    lost = Lost(stage.place, numbers[1], numbers[1], Reason.NOT_HELD)
    assert kept == [numbers[0], lost, numbers[2], Ended(None)]
