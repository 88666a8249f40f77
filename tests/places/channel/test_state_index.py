"""Which messages the state rests on."""

from __future__ import annotations

from linnet.core.ids import TopicId
from linnet.places.channel.rows import Mark
from linnet.places.channel.state_index import StateIndex
from linnet.store.memory import MemoryStore

PLACE = TopicId(b"place..." * 4)


def test_a_verified_hash_lets_go_of_what_is_before() -> None:
    cells = MemoryStore().cells
    index = StateIndex(PLACE, cells)
    for message in (2, 5, 6):
        index.add(message, True)
    index.add(7, False)
    index.add(10, True)
    assert (index.base, index.messages()) == (0, [2, 5, 6, 10])
    index.mark(6, Mark.APPLIED)
    index.mark(7, Mark.APPLIED | Mark.HASH)
    for looked_at in (index, StateIndex(PLACE, cells)):
        assert (looked_at.base, looked_at.applied, looked_at.messages()) == (7, 7, [10])
        assert [looked_at.needs(message) for message in (5, 6, 7, 8, 10)] == [False, False, True, False, True]
        assert (looked_at.highest(9), looked_at.highest(10)) == (6, 10)
    index.add(5, True)  # from history
    assert index.messages() == [10]


def test_a_cut_takes_back() -> None:
    cells = MemoryStore().cells
    index = StateIndex(PLACE, cells)
    for message in (2, 5, 6):
        index.add(message, True)
        index.mark(message, Mark.APPLIED)
    index.mark(5, Mark.HASH)
    index.cut(5)
    for looked_at in (index, StateIndex(PLACE, cells)):
        assert (looked_at.base, looked_at.applied, looked_at.messages()) == (5, 5, [])
    index.cut(4)
    assert (index.base, index.applied, index.highest(9)) == (0, 0, 0)


def test_an_older_hash_that_is_verified_late_is_no_step_back() -> None:
    index = StateIndex(PLACE, MemoryStore().cells)
    index.mark(7, Mark.HASH)
    index.mark(3, Mark.HASH)
    assert index.base == 7
