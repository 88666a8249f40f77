"""Dates and times, in UTC."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.content.attribute_types.numbers import EARLIEST, LATEST, date_text, read_date
from linnet.content.attribute_types.text import BadPredicate, Reader


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1970-01-01", 0),
        ("1970-01-02", 86_400_000),
        ("1969-12-31T23:59:59.999Z", -1),
        ("2026-11-16T08:30Z", 1_794_817_800_000),
        ("2026-11-16T08:30:01Z", 1_794_817_801_000),
        ("2026-11-16T08:30:01.5Z", 1_794_817_801_500),
    ],
)
def test_dates_are_moments_and_have_one_shortest_text(text: str, milliseconds: int) -> None:
    assert read_date(Reader(text)) == milliseconds
    assert date_text(milliseconds) == text


@given(st.integers(EARLIEST, LATEST))
def test_every_moment_comes_back(moment: int) -> None:
    assert read_date(Reader(date_text(moment))) == moment


@pytest.mark.parametrize("text", ["12", "2026-1-1", "26-01-01", "x"])
def test_what_is_no_date_is_left_alone(text: str) -> None:
    reader = Reader(text)
    assert read_date(reader) is None
    assert reader.at == 0


@pytest.mark.parametrize(
    ("text", "at", "expected"),
    [
        ("2026-02-30", 0, "a date that exists"),
        ("2026-11-16T25:00Z", 0, "a date that exists"),
        ("2026-11-16T08:30", 16, "Z: times are in UTC"),
        ("2026-11-16T08:30+01:00", 16, "Z: times are in UTC"),
        ("2026-11-16x", 10, "a time"),
        ("0000-01-01", 0, "a date that exists"),
    ],
)
def test_what_is_wrong_with_a_date_is_pointed_at(text: str, at: int, expected: str) -> None:
    with pytest.raises(BadPredicate, match=expected) as caught:
        read_date(Reader(text))
    assert caught.value.at == at
