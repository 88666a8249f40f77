"""Summaries say what counting would say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.store.entries import ANN, BEN, NEWS, PHONE, TABLET, unit

from linnet.core.stores import ChainHead, Entry
from linnet.store.sqlite_log import ChainSummary, TopicSummary

entries = st.builds(
    unit,
    st.none() | st.integers(min_value=0, max_value=30),
    st.integers(min_value=1, max_value=5),
    size=st.integers(min_value=0, max_value=20),
)


@given(st.lists(entries, max_size=20))
def test_a_chain_spans_its_units(units: list[Entry]) -> None:
    chain = ChainSummary(7, ANN, PHONE)
    for entry in units:
        chain.add(entry)
    numbered = [
        (entry.first, entry.first + entry.count - 1, entry) for entry in units if entry.first is not None
    ]
    assert chain.units == len(units)
    assert chain.longest == max((entry.count for _, _, entry in numbered), default=0)
    if not numbered:
        assert chain.chain_head() is None
        return
    last = max(end for _, end, _ in numbered)
    head = next(entry.head for _, end, entry in numbered if end == last)
    assert chain.chain_head() == ChainHead(ANN, PHONE, min(first for first, _, _ in numbered), last, head)


def test_the_row_of_a_chain() -> None:
    chain = ChainSummary(7, ANN, PHONE)
    assert chain.row(3) == (7, 3, ANN, PHONE, 0, 0, None, None, None)
    chain.add(unit(4, 2))
    assert chain.row(3) == (7, 3, ANN, PHONE, 1, 2, 4, 5, unit(4, 2).head)


def test_a_topic_counts_units_in_and_out() -> None:
    topic = TopicSummary(3, NEWS)
    assert topic.row() is None, "an empty one needs no row"
    chain = topic.open_chain(1, ANN, PHONE)
    for position, entry in enumerate([unit(1, 3, size=10, at=5.0), unit(4, size=7, at=6.0)], 1):
        topic.add(position, entry)
        chain.add(entry)
    assert topic.row() == (3, NEWS, 2, 4, 17, 0)
    assert (topic.oldest, topic.newest) == (5.0, 6.0)
    assert [position for position, _ in topic.fresh] == [1, 2]
    topic.remove(unit(1, 3, size=10, at=5.0))
    assert topic.row() == (3, NEWS, 1, 1, 7, 0)
    assert chain.units == 1
    topic.remove(unit(4, size=7, at=6.0))
    assert topic.row() is None


def test_a_clock_that_goes_back_is_noted_for_good() -> None:
    topic = TopicSummary(3, NEWS)
    for position, at in enumerate([5.0, 5.0, 4.0, 9.0], 1):
        topic.add(position, unit(position, at=at))
        assert topic.stepped is (position >= 3)


def test_chains_are_found_by_owner_and_by_id() -> None:
    topic = TopicSummary(3, NEWS)
    first = topic.open_chain(1, ANN, PHONE)
    second = topic.open_chain(2, BEN, TABLET)
    assert topic.chains == {(ANN, PHONE): first, (BEN, TABLET): second}
    assert topic.owners == {1: first, 2: second}
    topic.close_chain(first)
    assert (topic.chains, topic.owners) == ({(BEN, TABLET): second}, {2: second})
