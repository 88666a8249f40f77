"""Which messages the state rests on."""

from __future__ import annotations

from linnet.core.ids import TopicId
from linnet.places.channel.fragment_store import BEFORE, Mark, StateIndex
from linnet.store.memory import MemoryStore

PLACE = TopicId(b"place..." * 4)


def test_a_verified_hash_is_the_base_and_what_is_before_stays_known() -> None:
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
        assert [looked_at.highest(most) for most in (1, 2, 4, 9, 10)] == [None, 2, 2, 6, 10]
    index.add(4, True)  # from history
    assert (index.messages(), index.highest(4)) == ([10], 4)
    index.add(1, True)  # older than all that is known: there may be others between them
    assert (index.messages(), index.highest(1)) == ([10], None)


def test_only_so_many_stay_known_before_a_hash() -> None:
    cells = MemoryStore().cells
    index = StateIndex(PLACE, cells)
    for message in range(1, 2 * BEFORE + 1):
        index.add(message, True)
    index.mark(2 * BEFORE, Mark.HASH)
    assert index.lowest == 1
    index.add(2 * BEFORE + 1, True)
    index.mark(2 * BEFORE + 1, Mark.HASH)
    for looked_at in (index, StateIndex(PLACE, cells)):
        assert looked_at.lowest == BEFORE + 1
        assert (looked_at.highest(BEFORE), looked_at.highest(BEFORE + 1)) == (None, BEFORE + 1)


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
    assert (index.base, index.applied, index.highest(9)) == (0, 2, 2)
    index.cut(1)
    assert (index.base, index.applied, index.highest(9)) == (0, 0, None)


def test_a_cut_before_a_verified_hash_leaves_what_changed_state_before_it() -> None:
    index = StateIndex(PLACE, MemoryStore().cells)
    for message in (2, 5):
        index.add(message, True)
        index.mark(message, Mark.APPLIED)
    index.add(7, True)
    index.mark(7, Mark.APPLIED | Mark.HASH)
    index.cut(6)
    assert (index.base, index.applied, index.highest(6)) == (0, 5, 5)


def test_an_older_hash_that_is_verified_late_is_no_step_back() -> None:
    index = StateIndex(PLACE, MemoryStore().cells)
    index.mark(7, Mark.HASH)
    index.mark(3, Mark.HASH)
    assert index.base == 7
