"""Predicates: text, cover, merge, and what comes from peers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.content.predicates import attributes, events_of, near, predicates

from linnet.content.attribute_types.geo_box import Box
from linnet.content.attribute_types.text import TOPIC, BadPredicate
from linnet.content.predicate import (
    MOST_ATTRIBUTES,
    TEXT_CHARS,
    Attributes,
    Predicate,
    foreign_attributes,
    foreign_predicate,
    read_attributes,
    read_predicate,
)
from linnet.core.errors import BadText, RemoteError
from linnet.core.reasons import Reason


@given(predicates())
def test_canonical_text_and_predicate_are_the_same(predicate: Predicate) -> None:
    assert read_predicate(predicate.text) == predicate
    assert foreign_predicate(predicate.text) == predicate
    assert len(predicate.text) <= TEXT_CHARS


@given(attributes())
def test_canonical_text_and_attributes_are_the_same(event: Attributes) -> None:
    assert read_attributes(event.text) == event
    assert foreign_attributes(event.text) == event


@given(predicates(), predicates())
def test_texts_are_equal_where_predicates_are(one: Predicate, other: Predicate) -> None:
    assert (one.text == other.text) == (one == other)


def test_order_and_spaces_mean_nothing() -> None:
    one, other = (
        read_predicate("stock/apple/price[10,20]"),
        read_predicate(" price [ 10 , 20.0 ] / stock/apple "),
    )
    assert one == other
    assert one.text == "apple/price[10,20]/stock"


@given(st.data())
def test_a_predicate_that_covers_another_accepts_all_that_it_does(data: st.DataObject) -> None:
    one, other = data.draw(predicates()), data.draw(predicates())
    event = data.draw(events_of(one, other))
    if one.covers(other) and other.covers(event):
        assert one.covers(event)


@given(st.data())
def test_a_merged_predicate_accepts_exactly_the_union(data: st.DataObject) -> None:
    one = data.draw(predicates())
    other = data.draw(near(one) | predicates())
    merged = one.merged(other)
    assert merged == other.merged(one)
    if merged is not None:
        event = data.draw(events_of(one, other))
        assert merged.covers(event) == (one.covers(event) or other.covers(event))
        assert merged.covers(one)
        assert merged.covers(other)


@pytest.mark.parametrize(("goals", "accepted"), [(3, True), (5, True), (10, True), (2, False), (11, False)])
def test_bounds_are_included(goals: int, accepted: bool) -> None:
    asked = read_predicate("soccer/goals[3,10]")
    assert asked.covers(read_attributes(f"soccer/goals={goals}")) is accepted
    assert not asked.covers(read_attributes(f"goals={goals}"))


def test_fewer_attributes_cover_more() -> None:
    wide, narrow = read_predicate("portugal"), read_predicate("portugal/weather")
    assert wide.covers(narrow)
    assert not narrow.covers(wide)


def test_what_has_other_attributes_as_well_is_accepted() -> None:
    assert read_predicate("a").covers(read_attributes("a/b/c=1"))


@pytest.mark.parametrize(
    ("one", "other", "merged"),
    [
        ("price[0,1)", "price(1,2]", None),  # 1 is in neither
        ("price[0,1]/size[0,1]", "price[1,2]/size[1,2]", None),  # 0 and 2 are in neither
        ("stock/apple/price[10,15]", "stock/apple/price[12,20]", "apple/price[10,20]/stock"),
        ("stock/apple/price[10,15]", "stock/pear/price[12,20]", None),
        ("price[10,15]", "price[16,20]", None),
        ("price[10,15]/size[0,1]", "price[12,20]/size[0,2]", None),
        ("price[10,15]/size[0,1]", "price[12,20]/size[0,1]", "price[10,20]/size[0,1]"),
        ("price[10,15]", "price", None),
        ("price[10,15]", "price[10,15]/stock", None),
        ("a", "a", "a"),
    ],
)
def test_two_are_merged_where_nothing_lies_between_them(one: str, other: str, merged: str | None) -> None:
    first, second = read_predicate(one), read_predicate(other)
    found = first.merged(second)
    assert (None if found is None else found.text) == merged
    assert second.merged(first) == found
    assert (first, second) == (read_predicate(one), read_predicate(other))


def test_a_group_serves_what_it_carries_all_of() -> None:
    group = read_predicate("surf/bali/price[1000,2000]")
    assert read_predicate("surf").served_by(group)
    assert read_predicate("surf/price[1000,1500]").served_by(group)
    assert not read_predicate("surf/price[500,1500]").served_by(group)
    assert not read_predicate("surf/trip").served_by(group)
    assert not read_predicate("surf/bali/price[500,2500]").served_by(group)


@pytest.mark.parametrize(
    ("text", "at", "expected"),
    [
        ("", 0, "a name"),
        ("a/", 2, "a name"),
        ("a//b", 2, "a name"),
        ("bruno mars", 6, "or the end"),
        ("a=1b", 3, "the end of the number"),
        ("a[1,2]x", 6, "/ or the end"),
        ("price/price[1,2]", 6, "each name once"),
        ("a/b/c/d/e/f", 10, "the end after 5 attributes"),
        ("x" * 65, 0, "a name of at most 64"),
        ("a\x00", 1, "printed"),
        ("\u037e", 0, "stand for others"),
        ("a/" * TEXT_CHARS, TEXT_CHARS, "at most"),
    ],
)
def test_what_is_wrong_is_pointed_at(text: str, at: int, expected: str) -> None:
    with pytest.raises(BadPredicate) as caught:
        read_predicate(text)
    assert (caught.value.at, expected in caught.value.expected) == (at, True), caught.value
    with pytest.raises(RemoteError) as refused:
        foreign_predicate(text)
    assert refused.value.reason is Reason.MALFORMED


def test_an_event_has_values_and_no_ranges() -> None:
    assert read_attributes("stock/apple/price=12.5").text == "apple/price=12.5/stock"
    with pytest.raises(BadPredicate, match="character 12: expected = and one value"):
        read_attributes("stock/price[10,20]")
    with pytest.raises(BadText):
        Attributes(read_predicate("a[1,2]").conditions)


@pytest.mark.parametrize("text", ["b/a", "a ", "a=1.0", "a[1,1]", "a[2,]", 'n="x\u0308"'])
def test_what_comes_from_peers_is_canonical(text: str) -> None:
    read_predicate(text)
    with pytest.raises(RemoteError, match="canonical"):
        foreign_predicate(text)


def test_the_number_of_attributes_is_configured_within_a_bound() -> None:
    text = "/".join("abcdefghi")
    assert read_predicate(text[:15], most=8).size == 8
    with pytest.raises(BadPredicate, match=f"after {MOST_ATTRIBUTES} attributes"):
        read_predicate(text, most=100)


@pytest.mark.parametrize(
    "names", [(), ("b", "a"), ("a", "a"), ("a b",), ("a/b",), ("",), ("a\u0308",), tuple("abcdefghi")]
)
def test_predicates_that_cannot_be_are_not_made(names: tuple[str, ...]) -> None:
    with pytest.raises(BadText):
        Predicate(tuple((name, TOPIC) for name in names))


@given(st.text(alphabet='ab/[](){},="*\\ 0159.-TZ', max_size=30))
def test_any_text_is_read_or_pointed_at(text: str) -> None:
    at: int | None = None
    try:
        predicate = read_predicate(text)
    except BadPredicate as error:
        at = error.at
    else:
        assert read_predicate(predicate.text) == predicate
    assert at is None or 0 <= at <= len(text)


@given(st.data())
def test_pieces_cross_no_line_and_accept_what_the_predicate_does(data: st.DataObject) -> None:
    predicate = data.draw(predicates())
    event = data.draw(events_of(predicate))
    boxes = [each for piece in predicate.pieces for _, each in piece.conditions if isinstance(each, Box)]
    assert all(box.west <= box.east for box in boxes)
    assert any(piece.covers(event) for piece in predicate.pieces) == predicate.covers(event)
    assert all(predicate.covers(piece) for piece in predicate.pieces)
