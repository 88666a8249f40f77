"""The indexes beside fragments: rows, ranges of numbers, spans of bytes, and what the state rests on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from linnet.core.ids import AuthorId, EventId, TopicId
from linnet.core.limits import LARGEST_COUNT
from linnet.places.channel.fragment_store import BEFORE, Mark, Numbers, Row, Rows, Spans, StateIndex, make_row
from linnet.places.multicast.fragmentation import Change, Flag, Head
from linnet.store.memory import MemoryStore

PLACE = TopicId(b"place..." * 4)


def test_a_verified_hash_is_the_base_and_what_is_before_stays_known() -> None:
    cells = MemoryStore().cells
    index = StateIndex(PLACE, cells)
    for message in (2, 5, 6):
        index.add(message, True)
    index.add(7, False)
    index.add(10, True)
    assert (index.base, index.highest(10)) == (0, 10)
    index.mark(6, Mark.APPLIED)
    index.mark(7, Mark.APPLIED | Mark.HASH)
    for looked_at in (index, StateIndex(PLACE, cells)):
        assert looked_at.base == 7
        assert [looked_at.highest(most) for most in (1, 2, 4, 9, 10)] == [None, 2, 2, 6, 10]
    index.add(4, True)  # from history
    assert index.highest(4) == 4
    index.add(1, True)  # older than all that is known: there may be others between them
    assert index.highest(1) is None


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
        assert (looked_at.base, looked_at.highest(9)) == (5, 5)
    index.cut(4)
    assert (index.base, index.highest(9)) == (0, 2)
    index.cut(1)
    assert (index.base, index.highest(9)) == (0, None)


def test_a_cut_before_a_verified_hash_leaves_what_changed_state_before_it() -> None:
    index = StateIndex(PLACE, MemoryStore().cells)
    for message in (2, 5):
        index.add(message, True)
        index.mark(message, Mark.APPLIED)
    index.add(7, True)
    index.mark(7, Mark.APPLIED | Mark.HASH)
    index.cut(6)
    assert (index.base, index.highest(6)) == (0, 5)


def test_an_older_hash_that_is_verified_late_is_no_step_back() -> None:
    index = StateIndex(PLACE, MemoryStore().cells)
    index.mark(7, Mark.HASH)
    index.mark(3, Mark.HASH)
    assert index.base == 7


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


NUMBER = st.integers(0, LARGEST_COUNT)
EVENT = EventId(b"e" * 32)


@given(
    row=st.builds(
        Row,
        NUMBER,
        st.binary(min_size=32, max_size=32).map(EventId),
        *[NUMBER] * 5,
        st.integers(0, 2**32 - 1),
        st.integers(0, 255),
        st.integers(0, 255),
    )
)
def test_a_row_comes_back_as_it_was(row: Row) -> None:
    rows = Rows(PLACE, MemoryStore().cells)
    rows.put(row)
    assert rows.get(row.fragment) == rows.at(row.message, row.offset) == row
    rows.delete(row)
    assert (rows.get(row.fragment), rows.at(row.message, row.offset)) == (None, None)


def test_only_a_removal_ends_a_generation() -> None:
    whole = Flag.FIRST | Flag.LAST
    heads = [
        Head(1, 4, 3, 0, 7, whole, change)
        for change in (None, Change(AuthorId(EVENT), True, 0), Change(AuthorId(EVENT), False, 0))
    ]
    rows = [make_row(head, EVENT, 1, 10) for head in heads]
    assert [row.next_generation for row in rows] == [7, 7, 8]
    assert [row.marks for row in rows] == [0, Mark.CHANGE, Mark.CHANGE]
    assert all(row.is_first and row.is_last and row.end == 10 for row in rows)


PIECES = [(offset, 3) for offset in range(0, 18, 3)]


@given(order=st.permutations(PIECES), removed=st.lists(st.sampled_from(PIECES), unique=True))
def test_spans_are_the_bytes_that_are_held(
    order: list[tuple[int, int]], removed: list[tuple[int, int]]
) -> None:
    spans = Spans([], [])
    held: set[int] = set()
    for offset, length in order:
        last = offset == 15
        assert spans.fits(offset, length, last)
        spans.add(offset, length, last)
        assert not spans.fits(offset, length, last)
        held |= set(range(offset, offset + length))
        assert _bytes(spans) == held
    assert spans.is_whole
    assert (spans.begins, spans.ends, spans.total) == ([0], [18], 18)
    for offset, length in removed:
        spans.remove(offset, offset + length)
        held -= set(range(offset, offset + length))
        assert _bytes(spans) == held
        assert not spans.is_whole
    for offset, length in removed:
        last = offset == 15
        assert spans.fits(offset, length, last)
        spans.add(offset, length, last)
    assert spans.begins == [0]


def _bytes(spans: Spans) -> set[int]:
    ranges = [range(first, end) for first, end in zip(spans.begins, spans.ends, strict=True)]
    assert all(len(each) for each in ranges)
    assert spans.begins == sorted(spans.begins)
    assert all(end < begin for end, begin in zip(spans.ends, spans.begins[1:], strict=False))
    return {number for each in ranges for number in each}


def test_a_message_without_bytes_is_whole() -> None:
    spans = Spans([], [])
    spans.add(0, 0, True)
    assert spans.is_whole
    assert not spans.fits(0, 1, False)
