"""Ranges of numbers beside a plain set of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from linnet.core.ids import TopicId
from linnet.places.channel.fragment_store import Numbers
from linnet.store.memory import MemoryStore

PLACE = TopicId(b"place..." * 4)
RANGES = st.tuples(st.integers(0, 20), st.integers(0, 4)).map(lambda pair: (pair[0], pair[0] + pair[1]))
STEPS = st.lists(st.tuples(st.booleans(), RANGES), max_size=20)


@given(steps=STEPS, below=st.integers(0, 30), most=st.integers(0, 9))
def test_numbers_are_a_set(steps: list[tuple[bool, tuple[int, int]]], below: int, most: int) -> None:
    cells = MemoryStore().cells
    numbers = Numbers(PLACE, cells)
    model: set[int] = set()
    for adds, (first, last) in steps:
        if adds:
            numbers.add(first, last)
            model |= set(range(first, last + 1))
        else:
            numbers.remove(list(range(first, last + 1)))
            model -= set(range(first, last + 1))
    for looked_at in (numbers, Numbers(PLACE, cells)):
        assert {n for first, last in looked_at.ranges for n in range(first, last + 1)} == model
        assert looked_at.upto == next(n for n in range(30) if n not in model)
        assert looked_at.last == max(model, default=-1)
        assert [looked_at.has(n) for n in range(30)] == [n in model for n in range(30)]
        holes = looked_at.missing(below, 99)
        assert {n for first, last in holes for n in range(first, last + 1)} == set(range(below)) - model
        assert looked_at.missing(below, most) == holes[:most]


def test_too_many_ranges_are_refused() -> None:
    numbers = Numbers(PLACE, MemoryStore().cells, most=2)
    numbers.add(1, 1)
    numbers.add(5, 5)
    asked = [(0, 0), (2, 2), (3, 3), (4, 4), (6, 6), (7, 7), (2, 4)]
    assert [numbers.has_room(*pair) for pair in asked] == [True, True, False, True, True, False, True]
