"""Rows survive their cells, whatever their numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from linnet.core.ids import AuthorId, EventId, TopicId
from linnet.core.limits import LARGEST_COUNT
from linnet.places.channel.fragment_store import Mark, Row, Rows, make_row
from linnet.places.multicast.fragmentation import Change, Flag, Head
from linnet.store.memory import MemoryStore

PLACE = TopicId(b"place..." * 4)
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
