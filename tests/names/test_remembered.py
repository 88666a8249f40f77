"""What was resolved is remembered, so much of it, over restarts."""

from __future__ import annotations

import pytest
from tests.names.people import DAY, NOW, PLACE_C, Z, place, zone_of

from linnet.core.errors import StoreError
from linnet.names.remembered import SPACE, Remembered
from linnet.store.memory import MemoryStore

ZONE = zone_of("alice")
BLOCKS = [ZONE.publish(label, place(PLACE_C, Z), DAY, NOW).block for label in ("a", "b", "c")]


def test_those_unused_for_longest_go_first() -> None:
    store = MemoryStore()
    memory = Remembered(store.cells, 2)
    assert [memory.learn(BLOCKS[n]) for n in (0, 1, 0, 2)] == [0, 0, 0, 1]
    assert [memory.find(each.lookup) for each in BLOCKS] == [BLOCKS[0], None, BLOCKS[2]]
    again = Remembered(store.cells, 2)
    assert [again.find(each.lookup) for each in BLOCKS] == [BLOCKS[0], None, BLOCKS[2]]


def test_a_damaged_store_is_said_to_be_one() -> None:
    store = MemoryStore()
    store.cells.put(SPACE, b"k", b"?")
    with pytest.raises(StoreError):
        Remembered(store.cells, 2)
