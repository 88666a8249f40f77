"""Pages of units."""

from __future__ import annotations

from tests.rooms.relay.scenes import World, card_of

from linnet.core.stores import Entry
from linnet.delivery.cards import CardBook
from linnet.event.signing import encode_unit
from linnet.rooms.relay.event_cache import Placed
from linnet.rooms.relay.mailbox import Pages
from linnet.store.memory import MemoryStore

WORLD = World()
UNITS = [WORLD.chronicle.units[WORLD.say(who, b"." * 100).id] for who in ("ann", "ben", "ann", "ann")]
SIZE = len(encode_unit(UNITS[0].unit))


def pages(events: int = 100, size: int = 10**6) -> Pages:
    cards = CardBook(MemoryStore().cells)
    cards.learn(card_of("ann"))
    return Pages(cards, events, size)


def placed() -> list[Placed]:
    return [
        (
            10 + number,
            Entry(
                WORLD.room,
                unit.unit.author,
                unit.unit.device,
                unit.unit.seq,
                1,
                unit.head,
                0.0,
                encode_unit(unit.unit),
            ),
        )
        for number, unit in enumerate(UNITS)
    ]


def test_a_page_ends_by_number_limit_or_bytes_and_has_one_at_least() -> None:
    cases = {
        (100, 10**6, None): (4, True),
        (3, 10**6, None): (3, False),
        (3, 10**6, 2): (2, False),
        (100, 2 * SIZE + 5, None): (2, False),
        (100, 1, None): (1, False),
    }
    for (events, size, limit), (count, whole) in cases.items():
        page = pages(events, size).cut_page(placed(), limit)
        assert (len(page.units), page.whole, page.last) == (count, whole, 9 + count)
        assert page.ids == tuple(unit.head for unit in UNITS[:count])
        assert page.units == tuple(unit.unit for unit in UNITS[:count])


def test_an_empty_page() -> None:
    page = pages().cut_page([])
    assert (page.units, page.last, page.whole) == ((), 0, True)


def test_units_at_hand_are_cut_alike() -> None:
    at_hand = [(unit.head, unit.unit) for unit in UNITS]
    assert pages(3).cut_units(at_hand) == ([unit.unit for unit in UNITS[:3]], 3)
    assert pages(3, 1).cut_units(at_hand) == ([UNITS[0].unit], 1)


def test_each_card_that_is_known_comes_once() -> None:
    assert pages().cards_for(unit.unit for unit in UNITS) == (card_of("ann"),)
