"""Windows and cursors: what is in flight, what waits, what was handled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.delivery.voices import TOPIC, Voice

from linnet.core.effects import Deliver
from linnet.core.errors import StoreError
from linnet.core.reasons import Reason
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.items import Ended, Item
from linnet.delivery.subscriptions import Cursor, Window
from linnet.machine.outbox import Outbox
from linnet.store.memory import MemoryStore

EVENTS: list[Item] = [event for unit in Voice().units(20) for event in unit.events]
CONFIG = DeliveryConfig(window_items=4, buffer_items=6)


def handed(act: Callable[..., object], /, *args: object) -> list[Any]:
    """What goes out while something is done."""
    out = Outbox()
    act(*args, out)
    return [*out.take()]


def deliver(*items: Item) -> Deliver[Item]:
    return Deliver(3, items)


def test_items_are_handed_over_while_there_is_room() -> None:
    window: Window[Item] = Window(3, CONFIG)
    assert handed(window.hand, ()) == []
    assert handed(window.hand, EVENTS[:3]) == [deliver(*EVENTS[:3])]
    assert window.room == 1
    assert handed(window.hand, EVENTS[3:6]) == [deliver(EVENTS[3])]
    assert window.room == 0
    assert handed(window.hand, EVENTS[6:7]) == []
    assert handed(window.handle_consumed, 2) == [deliver(*EVENTS[4:6])]
    assert handed(window.handle_consumed, 4) == [deliver(EVENTS[6])]


def test_a_reader_that_is_too_slow_is_told_so_once() -> None:
    window: Window[Item] = Window(3, CONFIG)
    window.hand(EVENTS[:4], Outbox())
    assert handed(window.hand, EVENTS[4:10]) == []
    assert handed(window.hand, EVENTS[10:11]) == [deliver(Ended(Reason.SUBSCRIBER_SLOW))]
    assert window.ended
    assert handed(window.hand, EVENTS[11:12]) == []
    assert handed(window.end, None) == []
    assert handed(window.handle_consumed, 4) == []


def test_ending_hands_over_what_waits() -> None:
    window: Window[Item] = Window(3, CONFIG)
    window.hand(EVENTS[:6], Outbox())
    assert handed(window.end, None) == [deliver(*EVENTS[4:6], Ended(None))]


def test_it_is_idle_when_half_of_it_is_free() -> None:
    window: Window[Item] = Window(3, CONFIG)
    assert window.idle
    window.hand(EVENTS[:5], Outbox())
    assert not window.idle
    window.handle_consumed(1, Outbox())
    assert not window.idle
    window.handle_consumed(2, Outbox())
    assert window.idle


def test_more_than_a_window_fits_when_nothing_is_in_flight() -> None:
    """Otherwise a burst that is larger than the window would wait for ever."""
    window: Window[Item] = Window(3, CONFIG)
    assert window.fits(5)
    window.hand(EVENTS[:1], Outbox())
    assert window.fits(3)
    assert not window.fits(4)


@given(st.lists(st.tuples(st.booleans(), st.integers(min_value=1, max_value=5)), max_size=60))
def test_nothing_is_lost_or_doubled_and_the_window_holds(steps: list[tuple[bool, int]]) -> None:
    window: Window[Item] = Window(3, DeliveryConfig(window_items=4, buffer_items=1000))
    offered: list[Item] = []
    shown: list[Item] = []
    handled = 0
    for is_offer, count in steps:
        if is_offer:
            batch: list[Item] = [EVENTS[(len(offered) + n) % 20] for n in range(count)]
            offered += batch
            effects = handed(window.hand, batch)
        else:
            count = min(count, len(shown) - handled)
            handled += count
            effects = handed(window.handle_consumed, count)
        for effect in effects:
            shown += effect.items
        assert len(shown) - handled <= 4
        assert shown == offered[: len(shown)]
    assert len(shown) == min(len(offered), handled + 4)


def cursor_at(store: MemoryStore, name: str = "mine") -> Cursor:
    return Cursor(TOPIC, name, store.cells)


def test_a_new_cursor_begins_where_it_is_told_and_an_old_one_where_it_was() -> None:
    store = MemoryStore()
    cursor = cursor_at(store)
    assert not cursor.resumed
    cursor.begin(5)
    assert (cursor.position, cursor.read) == (5, 5)
    again = cursor_at(store)
    assert again.resumed
    assert (again.position, again.read) == (5, 5)
    assert not cursor_at(store, "other").resumed


def test_a_cursor_moves_over_units_that_were_handled_whole() -> None:
    store = MemoryStore()
    cursor = cursor_at(store)
    cursor.begin(0)
    cursor.note_handed(1, 3)
    cursor.note_handed(2, 2)
    assert cursor.read == 2
    assert cursor.note_handled(2)
    assert cursor_at(store).position == 0
    assert cursor.note_handled(1)
    assert cursor_at(store).position == 1
    assert cursor.note_handled(1)
    assert cursor.note_handled(5)
    assert cursor_at(store).position == 2
    assert not cursor.note_handled(5)


def test_what_was_handled_of_a_unit_is_not_handed_over_again() -> None:
    store = MemoryStore()
    cursor = cursor_at(store)
    cursor.begin(0)
    cursor.note_handed(1, 3)
    cursor.note_handled(1)
    again = cursor_at(store)
    assert (again.position, again.count_skipped(1), again.count_skipped(2)) == (0, 1, 0)
    again.note_handed(1, 2)
    again.note_handed(2, 4)
    again.note_handled(1)
    assert cursor_at(store).count_skipped(1) == 2
    again.note_handled(2)
    last = cursor_at(store)
    assert (last.position, last.count_skipped(1), last.count_skipped(2)) == (1, 0, 1)


def test_a_unit_that_shows_nothing_is_passed_over_with_the_next() -> None:
    store = MemoryStore()
    cursor = cursor_at(store)
    cursor.begin(0)
    cursor.note_handed(1, 0)
    cursor.note_handed(2, 1)
    assert cursor.note_handled(1)
    assert cursor.position == 2


@pytest.mark.parametrize("size", [0, 8, 19, 21])
def test_a_place_that_is_none_is_named(size: int) -> None:
    store = MemoryStore()
    cursor_at(store).begin(5)
    ((key, place),) = store.cells.scan("cursor")
    store.cells.put("cursor", key, (place + bytes(10))[:size])
    with pytest.raises(StoreError, match=f"subscription 'mine' has {size} bytes, not 20"):
        cursor_at(store)
