"""What one who watches is handed: everything, in bounded portions, live or from the store."""

from __future__ import annotations

import pytest
from tests.places.stage import Stage

from linnet.delivery.items import Item
from linnet.places.commands import Announced, AnnounceMore
from linnet.places.config import PlacesConfig
from linnet.places.items import Body, Lost, PlaceItem, Said

BYTES = 65_536
TIGHT = PlacesConfig(watch_bytes=BYTES)


def bodies(items: list[Item | PlaceItem]) -> dict[int, bytes]:
    """By message, what was handed over of its body in one piece after the other."""
    found: dict[int, bytes] = {}
    for item in items:
        if isinstance(item, Body):
            held = found.get(item.message, b"")
            assert len(held) == item.offset
            found[item.message] = held + item.data
    return found


def drain(stage: Stage, number: int) -> list[Item | PlaceItem]:
    """Take and handle until nothing more comes; never more than a window is on its way."""
    found: list[Item | PlaceItem] = []
    while portion := stage.take(number):
        assert sum(len(item.data) for item in portion if isinstance(item, Body)) <= BYTES + 61_440
        found += portion
        stage.consumed(number, len(portion))
    return found


def test_a_slow_one_reads_the_rest_from_the_store_and_each_byte_once() -> None:
    stage = Stage(TIGHT)
    stage.watch(1)
    large, small = bytes(range(250)) * 4000, b"small"
    first, second = stage.say(large), stage.say(small)
    assert bodies(drain(stage, 1)) == {first: large, second: small}
    third = stage.say(b"live again")
    assert bodies(drain(stage, 1)) == {third: b"live again"}


def test_messages_that_are_under_way_at_once_come_piece_by_piece() -> None:
    stage = Stage(TIGHT)
    stage.watch(1)
    opened = stage.say(b"a" * 50_000, more=True)
    between = stage.say(b"b" * 50_000)
    for number in range(5):
        stage.ask(AnnounceMore(stage.place, opened, b"c" * 50_000, number < 4), Announced)
    heard = bodies(drain(stage, 1))
    assert heard == {opened: b"a" * 50_000 + b"c" * 250_000, between: b"b" * 50_000}


@pytest.mark.parametrize("since", [1, 3])
def test_whoever_comes_later_is_handed_what_is_older_first(since: int) -> None:
    stage = Stage()
    numbers = [stage.say(b"%d" % number) for number in range(4)]
    stage.watch(1, since=since)
    new = stage.say(b"new")
    items = drain(stage, 1)
    assert list(bodies(items)) == [number for number in (*numbers, new) if number >= since]
    historic = {item.message: item.historic for item in items if isinstance(item, Said)}
    assert historic == {number: number != new for number in (*numbers, new) if number >= since}


def test_a_message_that_began_before_is_handed_to_those_alone_who_asked_for_it() -> None:
    stage = Stage()
    opened = stage.say(b"a", more=True)
    stage.watch(1)
    stage.watch(2, since=opened)
    stage.ask(AnnounceMore(stage.place, opened, b"b", False), Announced)
    assert bodies(drain(stage, 1)) == {}
    assert bodies(drain(stage, 2)) == {opened: b"ab"}


def test_the_place_of_a_durable_one_is_the_first_message_not_handled_whole() -> None:
    stage = Stage()
    assert not stage.watch(1, durable="bot").resumed
    first, second, third = (stage.say(text) for text in (b"1", b"2", b"3"))
    items = stage.take(1)
    upto_second = 1 + max(at for at, item in enumerate(items) if getattr(item, "message", 0) == first)
    stage.consumed(1, upto_second + 1)
    stage.restart()
    resumed = stage.watch(1, durable="bot")
    assert (resumed.resumed, resumed.since) == (True, second)
    assert list(bodies(drain(stage, 1))) == [second, third]
    stage.restart()
    assert stage.watch(1, durable="bot").since == third + 1


def test_what_was_evicted_is_told_as_lost() -> None:
    stage = Stage()
    numbers = [stage.say(b"%d" % number) for number in range(3)]
    fragments = stage.places._places[stage.place].parts.fragments
    for number in numbers[:2]:
        row = fragments.get_at(number, 0)
        assert row is not None
        fragments.evicted(row)
    stage.watch(1, since=numbers[0])
    items = drain(stage, 1)
    assert [(item.first, item.last) for item in items if isinstance(item, Lost)] == [(numbers[0], numbers[1])]
    assert list(bodies(items)) == [numbers[2]]
