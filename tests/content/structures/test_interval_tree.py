"""Intervals that hold a number."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from linnet.content.structures.interval_tree import Intervals

EDGE = 1 << 62
BOUNDS = st.one_of(st.integers(-20, 20), st.sampled_from([-EDGE, EDGE, 2**40, -(2**40)]))
INTERVALS = st.lists(st.tuples(BOUNDS, BOUNDS).map(sorted).map(tuple), max_size=80)


@given(INTERVALS, st.sets(st.integers(0, 79)), st.lists(BOUNDS, min_size=1, max_size=10))
def test_found_is_what_a_scan_finds(
    intervals: list[tuple[int, int]], taken: set[int], numbers: list[int]
) -> None:
    kept = dict(enumerate(intervals))
    found = Intervals()
    for handle, (first, last) in kept.items():
        found.add(first, last, handle)
    for handle in sorted(taken & set(kept)):
        found.remove(*kept.pop(handle), handle)
    assert len(found) == len(kept)
    for number in numbers:
        holding = sorted(handle for handle, (first, last) in kept.items() if first <= number <= last)
        assert sorted(found.holding(number)) == holding
        assert found.about(number) >= (1 if holding else 0)


def test_a_full_block_is_kept_in_order() -> None:
    found = Intervals()
    for number in range(200):
        found.add(-number, number, number)
    assert sorted(found.holding(0)) == list(range(200))
    assert sorted(found.holding(150)) == list(range(150, 200))
    assert sorted(found.holding(-199)) == [199]
    for number in range(200):
        found.remove(-number, number, number)
    assert (len(found), found.holding(0), found.about(0)) == (0, [], 0)
