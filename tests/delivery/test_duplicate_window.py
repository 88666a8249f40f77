"""The duplicate window, against a plain set of numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from linnet.delivery.chain import Range, SeenRanges

SMALL = st.integers(min_value=0, max_value=60)
RANGES = st.tuples(SMALL, st.integers(min_value=0, max_value=6)).map(lambda it: (it[0], it[0] + it[1]))


def numbers(ranges: list[Range]) -> set[int]:
    return {number for first, last in ranges for number in range(first, last + 1)}


def test_without_gaps_there_is_one_range() -> None:
    seen = SeenRanges(10)
    for number in range(1000):
        assert seen.add(number, number) is None
    assert seen.ranges == [(0, 999)]
    assert seen.last == 999
    assert len(seen) == 1


def test_a_gap_splits_and_a_late_arrival_merges() -> None:
    seen = SeenRanges(10)
    seen.add(0, 3)
    seen.add(6, 9)
    seen.add(20, 20)
    assert seen.ranges == [(0, 3), (6, 9), (20, 20)]
    assert seen.missing(0, 25) == [(4, 5), (10, 19), (21, 25)]
    seen.add(4, 5)
    assert seen.ranges == [(0, 9), (20, 20)]
    seen.add(10, 19)
    assert seen.ranges == [(0, 20)]


def test_nothing_seen() -> None:
    seen = SeenRanges(10)
    assert seen.last == -1
    assert not seen.covers(0, 0)
    assert not seen.touches(0, 100)
    assert seen.missing(3, 5) == [(3, 5)]


def test_beyond_its_capacity_the_lowest_range_goes_and_all_below_counts_as_seen() -> None:
    seen = SeenRanges(2)
    seen.add(5, 6)
    seen.add(10, 10)
    assert seen.add(20, 20) == (5, 6)
    assert seen.ranges == [(10, 10), (20, 20)]
    assert seen.floor == 7
    assert seen.covers(0, 6)
    assert seen.touches(6, 7)
    assert not seen.covers(7, 7)
    assert seen.missing(0, 20) == [(7, 9), (11, 19)]


def test_the_floor_is_the_latest_when_every_range_is_gone() -> None:
    seen = SeenRanges(1)
    seen.add(5, 6)
    assert seen.add(10, 10) == (5, 6)
    assert seen.covers(3, 6)
    assert seen.covers(0, 10) is False
    assert seen.last == 10


@given(st.lists(RANGES, max_size=40), RANGES)
def test_it_is_a_set_of_numbers(added: list[Range], asked: Range) -> None:
    seen = SeenRanges(1000)
    model: set[int] = set()
    for first, last in added:
        assert seen.add(first, last) is None
        model |= set(range(first, last + 1))
        assert numbers(seen.ranges) == model
        assert seen.last == max(model)
    borders = [edge for pair in seen.ranges for edge in pair]
    assert borders == sorted(borders)
    assert all(after - before > 1 for before, after in zip(borders[1::2], borders[2::2], strict=False))
    wanted = set(range(asked[0], asked[1] + 1))
    assert seen.covers(*asked) == (wanted <= model)
    assert seen.touches(*asked) == bool(wanted & model)
    assert numbers(seen.missing(*asked)) == wanted - model


@given(st.lists(RANGES, max_size=60), st.integers(min_value=1, max_value=4), RANGES)
def test_with_little_room_it_forgets_only_towards_seen(
    added: list[Range], capacity: int, asked: Range
) -> None:
    """What was seen stays seen, and what lies below the floor counts as seen, whatever is added."""
    seen = SeenRanges(capacity)
    model: set[int] = set()
    for first, last in added:
        if last < seen.floor:
            continue  # a duplicate: nobody adds it
        seen.add(first, last)
        model |= set(range(first, last + 1))
        assert len(seen) <= capacity
        assert all(seen.covers(number, number) for number in model)
    model |= set(range(seen.floor))
    wanted = set(range(asked[0], asked[1] + 1))
    assert seen.covers(*asked) == (wanted <= model)
    assert seen.touches(*asked) == bool(wanted & model)
    assert numbers(seen.missing(*asked)) == wanted - model
