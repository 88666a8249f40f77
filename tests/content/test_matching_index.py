"""The index finds what a scan finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from linnet.content.matching_index import Index
from linnet.content.predicate import Predicate, read_attributes, read_predicate
from linnet.testing.predicates import events_of, predicates


@given(st.data())
def test_found_is_what_a_scan_finds_while_predicates_come_and_go(data: st.DataObject) -> None:
    index: Index[int] = Index()
    kept: dict[int, Predicate] = {}
    asked = data.draw(st.lists(st.tuples(st.integers(0, 15), predicates()), min_size=1, max_size=40))
    for key, predicate in asked:
        if data.draw(st.integers(0, 3)):
            index.add(key, predicate)
            kept[key] = predicate
        else:
            assert index.remove(key) == kept.pop(key, None)
    assert len(index) == len(kept)
    for _ in range(3):
        event = data.draw(events_of(*(predicate for _, predicate in asked)))
        scan = sorted(key for key, predicate in kept.items() if predicate.covers(event))
        assert sorted(index.matching(event)) == scan


def test_an_empty_index_keeps_nothing_of_what_was_in_it() -> None:
    index: Index[str] = Index()
    texts = ["a", "a/b", "a/b/p[1,2]", 'n="x"*', "at{0,0,1,1}/day[2026-01-01,)", "p[1,2]/q[3,4]"]
    for text in texts:
        index.add(text, read_predicate(text))
    assert index.matching(read_attributes("a/b/p=1")) == ["a", "a/b", "a/b/p[1,2]"]
    assert "a/b" in index
    for text in texts:
        index.remove(text)
    assert (len(index), index.matching(read_attributes("a/b/p=1"))) == (0, [])
    assert index._root.children == {}


def test_of_two_ranges_the_one_with_fewer_candidates_names_them() -> None:
    index: Index[int] = Index()
    for number in range(1_000):
        index.add(number, read_predicate(f"p[0,10]/q[{number},{number}.5]"))
    assert index.matching(read_attributes("p=5/q=7.25")) == [7]
    assert index.matching(read_attributes("p=11/q=7.25")) == []
    assert index.matching(read_attributes("p=5/q=-1")) == []
