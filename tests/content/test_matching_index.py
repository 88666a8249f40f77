"""The index finds what a scan finds, and so does each of the structures that it looks into."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.content.predicates import conditions, events_of, predicates, values

from linnet.content.attribute_types.geo_box import Box
from linnet.content.attribute_types.text import Words
from linnet.content.matching_index import FINDERS, Beginnings, Index, Intervals, SortedRuns
from linnet.content.predicate import Condition, Predicate, covers, read_attributes, read_predicate

EDGE = 1 << 62
BOUNDS = st.one_of(st.integers(-20, 20), st.sampled_from([-EDGE, EDGE, 2**40, -(2**40)]))
INTERVALS = st.lists(st.tuples(BOUNDS, BOUNDS).map(sorted).map(tuple), max_size=80)
PAIRS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), max_size=60)


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


@given(st.lists(conditions(), max_size=40), st.lists(values(), min_size=1, max_size=6), st.data())
def test_each_kind_finds_what_a_scan_finds(
    asked: list[Condition], said: list[Condition], data: st.DataObject
) -> None:
    for kind, make in FINDERS.items():
        finder = make()
        kept: dict[int, Any] = {at: each for at, each in enumerate(asked) if type(each) is kind}
        for handle, condition in kept.items():
            finder.add(handle, condition)
        for handle in list(kept):
            if data.draw(st.booleans()):
                finder.remove(handle, kept.pop(handle))
        for value in said:
            if type(value) is kind:
                accepting = sorted(handle for handle, each in kept.items() if covers(each, value))
                assert sorted(finder.find(value)) == accepting
                assert finder.about(value) >= (1 if accepting else 0)


def test_a_text_is_looked_up_once_for_each_length() -> None:
    finder = Beginnings()
    for at, text in enumerate(("", "a", "ab", "b")):
        finder.add(at, Words(text, whole=False))
    finder.add(4, Words("abc"))
    assert finder.find(Words("abc")) == [4, 0, 1, 2]
    assert finder.find(Words("")) == [0]


def test_of_two_ways_to_look_for_boxes_the_narrower_is_taken() -> None:
    finder = FINDERS[Box]()
    for at in range(100):
        finder.add(at, Box(-90, at, 90, at))
    assert finder.about(Box(0, 7, 0, 7)) == 1
    assert finder.find(Box(0, 7, 0, 7)) == [7]


@given(INTERVALS, st.sets(st.integers(0, 79)), st.lists(BOUNDS, min_size=1, max_size=10))
def test_intervals_that_hold_a_number_are_those_that_a_scan_finds(
    intervals: list[tuple[int, int]], taken: set[int], numbers: list[int]
) -> None:
    kept = dict(enumerate(intervals))
    found = Intervals()
    for handle, (first, last) in kept.items():
        found.add(first, last, handle)
    for handle in sorted(taken & set(kept)):
        found.remove(*kept.pop(handle), handle)
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
    assert (found.holding(0), found.about(0)) == ([], 0)


@given(PAIRS, PAIRS)
@settings(max_examples=200)
def test_what_was_put_in_is_found_until_it_is_taken_out(
    added: list[tuple[int, int]], taken: list[tuple[int, int]]
) -> None:
    runs, kept = SortedRuns(run=4), set[tuple[int, int]]()
    for pair in added:
        if pair not in kept:
            runs.add(*pair)
            kept.add(pair)
    for pair in taken:
        if pair in kept:
            runs.remove(*pair)
            kept.discard(pair)
        else:
            with pytest.raises(KeyError):
                runs.remove(*pair)
    assert len(runs) == len(kept)
    for key in range(-1, 8):
        assert sorted(runs.up_to(key)) == sorted(handle for first, handle in kept if first <= key)
        assert 0 <= runs.about(key) <= len(kept)


def test_the_estimate_is_near() -> None:
    runs = SortedRuns()
    for number in range(10_000):
        runs.add(number * 7919 % 10_000, number)
    for key in (0, 100, 5_000, 9_999):
        assert abs(runs.about(key) - (key + 1)) <= 2_048
    assert runs.about(-1) == 0
