"""Ranges: bounds, cover, merge."""

from __future__ import annotations

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.content.predicates import NUMBERS, spans

from linnet.content.attribute_types.numbers import DateRange, NumberRange, read_exactly, read_span
from linnet.content.attribute_types.text import BadPredicate, Reader
from linnet.core.errors import BadText

PROBES = sorted({*NUMBERS, *(value + 0.25 for value in NUMBERS), -100.0, 100.0})


def inside(span: NumberRange | DateRange) -> list[float]:
    """Which of the probes are in a range, reckoned without it."""
    return [
        value
        for value in PROBES
        if (value > span.low if span.low_open else value >= span.low)
        and (value < span.high if span.high_open else value <= span.high)
    ]


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("[10,20]", NumberRange(10, 20)),
        ("(10,20)", NumberRange(10, 20, True, True)),
        ("[10,]", NumberRange(10, inf, False, True)),
        ("[,20]", NumberRange(-inf, 20, True)),
        ("(,)", NumberRange(-inf, inf, True, True)),
        ("[ -1.5 , 2 )", NumberRange(-1.5, 2, False, True)),
        ("[1970-01-01,1970-01-02)", DateRange(0, 86_400_000, False, True)),
        ("[1970-01-01,)", DateRange(0, inf, False, True)),
        ("[5,5]", NumberRange(5, 5)),
    ],
)
def test_ranges_are_read(text: str, span: NumberRange | DateRange) -> None:
    assert read_span(Reader(text)) == span


def test_a_single_value_is_a_range_of_its_own() -> None:
    assert read_exactly(Reader("12.5")) == NumberRange(12.5, 12.5)
    assert read_exactly(Reader("1970-01-01")) == DateRange(0, 0)
    assert NumberRange(12.5, 12.5).text == "=12.5"


@pytest.mark.parametrize(
    ("text", "at", "expected"),
    [
        ("[10,5]", 4, "not below the other"),
        ("[5,5)", 3, "something in it"),
        ("(5,5]", 3, "something in it"),
        ("[x,5]", 1, "a number or a date"),
        ("[5", 2, "a comma and the upper bound"),
        ("[5;6]", 2, "a comma and the upper bound"),
        ("[5,6", 4, "] or )"),
        ("[2026-01-01,6]", 12, "a date, as the other bound is"),
        ("[6,2026-01-01]", 3, "a number, as the other bound is"),
    ],
)
def test_what_is_wrong_with_a_range_is_pointed_at(text: str, at: int, expected: str) -> None:
    with pytest.raises(BadPredicate) as caught:
        read_span(Reader(text))
    assert (caught.value.at, expected in caught.value.expected) == (at, True)


@pytest.mark.parametrize(
    "bounds", [(2, 1), (nan, 1), (1, nan), (-inf, 1), (1, inf), (0, 0, True), (0.1 + 0.2, 1), (0, 1e20)]
)
def test_ranges_that_cannot_be_are_not_made(bounds: tuple[float, float]) -> None:
    with pytest.raises(BadText):
        NumberRange(*bounds)


@pytest.mark.parametrize("bounds", [(0.5, 1), (-inf, inf, True, True), (-1e15, 0), (0, 1e15)])
def test_dates_that_cannot_be_written_are_not_made(bounds: tuple[float, float]) -> None:
    with pytest.raises(BadText):
        DateRange(*bounds)


@given(spans())
def test_text_and_range_are_the_same(span: NumberRange | DateRange) -> None:
    read = read_exactly(Reader(span.text[1:])) if span.exact else read_span(Reader(span.text))
    assert read == span


@given(spans(dates=False), spans(dates=False))
def test_a_cover_holds_all_that_the_other_does(one: NumberRange, other: NumberRange) -> None:
    held = set(inside(other)) <= set(inside(one))
    assert held or not one.covers(other)
    if one.covers(other):
        assert one.first <= other.first
        assert other.last <= one.last
    elif held:
        # Between two probes there is more; the union is then wider than the one.
        assert one.merged(other) != one


@given(spans(dates=False), spans(dates=False))
def test_a_merged_range_is_exactly_the_union(one: NumberRange, other: NumberRange) -> None:
    merged = one.merged(other)
    assert merged == other.merged(one)
    if merged is not None:
        assert inside(merged) == sorted({*inside(one), *inside(other)})
        assert merged.covers(one)
        assert merged.covers(other)


@pytest.mark.parametrize(
    ("one", "other", "merged"),
    [
        ("[10,15]", "[12,20]", "[10,20]"),
        ("[0,5)", "[5,10]", "[0,10]"),
        ("[0,5]", "(5,10]", "[0,10]"),
        ("[0,5)", "(5,10]", None),
        ("[0,5]", "[6,10]", None),
        ("[,5]", "[5,)", "(,)"),
    ],
)
def test_ranges_are_merged_where_nothing_is_between_them(one: str, other: str, merged: str | None) -> None:
    first, second = read_span(Reader(one)), read_span(Reader(other))
    assert isinstance(first, NumberRange)
    assert isinstance(second, NumberRange)
    found = first.merged(second)
    assert (None if found is None else found.text) == merged


def test_all_of_time_is_not_merged_into_one_range() -> None:
    early, late = read_span(Reader("[,1970-01-02]")), read_span(Reader("[1970-01-01,]"))
    assert isinstance(early, DateRange)
    assert isinstance(late, DateRange)
    assert early.merged(late) is None


@given(spans(), st.sampled_from(NUMBERS))
def test_first_and_last_are_in_the_range_and_their_neighbours_are_not(
    span: NumberRange | DateRange, value: float
) -> None:
    point = type(span)(value * 86_400_000, value * 86_400_000)
    assert span.covers(point) == (span.first <= point.first <= span.last)
