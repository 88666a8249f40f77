"""Which operations on keys are kept, and what each device lacks of them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rooms.relay.scenes import World

from linnet.event.event import Event
from linnet.rooms.event_types import GROUP
from linnet.rooms.relay.event_index import Budget, GroupShelf, key_of
from linnet.store.memory import MemoryStore

WORLD = World()
EVENTS = [
    WORLD.chronicle.sign("ann" if number % 3 else "ben", GROUP, None, b"", WORLD.control)
    for number in range(24)
]
ANN, BEN = key_of(EVENTS[1]), key_of(EVENTS[0])


def test_what_is_kept_counts_for_its_author_and_in_all() -> None:
    budget, store = Budget(1000), MemoryStore()
    shelf = GroupShelf(WORLD.room, store.cells, budget)
    shelf.add(EVENTS[0], 3, 100, 0, 1.0)
    shelf.add(EVENTS[1], 5, 50, 1, 2.0)
    assert (budget.bytes_left, shelf.usage.bytes, shelf.usage.share_of(EVENTS[0].author).bytes) == (
        850,
        150,
        100,
    )
    assert [(item.position, item.key, item.at, item.side) for item in shelf.items] == [
        (3, BEN, 1.0, 0),
        (5, ANN, 2.0, 1),
    ]
    assert (shelf.position(EVENTS[0].id), EVENTS[2].id in shelf, len(shelf)) == (3, False, 2)
    shelf.remove(EVENTS[0], 100)
    assert (budget.bytes_left, shelf.position(EVENTS[0].id), len(shelf)) == (950, None, 1)
    assert GroupShelf(WORLD.room, store.cells, Budget(1000)).items == shelf.items


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-23, 23), max_size=40), st.integers(0, 60))
def test_what_a_device_lacks(steps: list[int], read: int) -> None:
    """Counted as by somebody who looks at each; the same after a restart."""
    store = MemoryStore()
    shelf = GroupShelf(WORLD.room, store.cells, Budget(10**6))
    kept: dict[int, Event] = {}
    for position, number in enumerate(steps, 1):
        event = EVENTS[abs(number)]
        if event.id not in shelf:
            shelf.add(event, position, 10, number % 2, float(position))
            kept[position] = event
        elif number < 0:
            del kept[shelf.position(event.id) or 0]
            shelf.remove(event, 10)
        for each in (shelf, GroupShelf(WORLD.room, store.cells, Budget(10**6))):
            assert [item.position for item in each.items] == list(kept)
            assert each.count_past(read) == sum(at > read for at in kept)
            for key in (ANN, BEN):
                assert each.count_unread(key, read) == sum(
                    at > read and key_of(one) != key for at, one in kept.items()
                )
