"""Numbers: what is written is what is meant."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.content.attribute_types.numbers import number_text, ordinal, plain_number, read_number
from linnet.content.attribute_types.text import BadPredicate, Reader
from linnet.core.errors import BadText

DECIMALS = st.builds(
    lambda digits, places: Decimal(digits).scaleb(-places),
    st.integers(-(10**15) + 1, 10**15 - 1),
    st.integers(0, 15),
)


@given(DECIMALS)
def test_every_number_of_fifteen_digits_comes_back(number: Decimal) -> None:
    text = number_text(read_number(Reader(format(number, "f"))))
    assert Decimal(text) == number
    assert number_text(read_number(Reader(text))) == text


@given(DECIMALS, DECIMALS)
def test_floats_compare_as_the_texts_do(one: Decimal, other: Decimal) -> None:
    first, second = (read_number(Reader(format(number, "f"))) for number in (one, other))
    assert (first < second) == (one < other)
    assert (ordinal(first) < ordinal(second)) == (one < other)


@pytest.mark.parametrize(
    "text",
    ["1234567890123456", "0.1234567890123456", "12345678.12345678", "1" + "0" * 20, "1e15", "1e-16", "1e999"],
)
def test_more_digits_are_refused_and_not_rounded(text: str) -> None:
    with pytest.raises(BadPredicate, match="at most 15 digits"):
        read_number(Reader(text))


@pytest.mark.parametrize(
    ("text", "at"),
    [("", 0), ("-", 0), (".", 0), ("+", 0), ("1e", 1), ("1e+", 1), ("e5", 0), ("0x10", 1), ("\u0661", 0)],
)
def test_what_is_no_number_is_pointed_at(text: str, at: int) -> None:
    with pytest.raises(BadPredicate) as caught:
        read_number(Reader(text))
    assert caught.value.at == at


WRITTEN = st.from_regex(
    r"[+-]?([0-9]{1,6}(\.[0-9]{1,6})?|\.[0-9]{1,6})([eE][+-]?[0-9]{1,2})?", fullmatch=True
)


@given(WRITTEN)
def test_signs_points_and_exponents_are_ways_to_write_the_same_number(text: str) -> None:
    # As it is written out: 1e20 has 21 digits, and zeros that were written count.
    whole, _, fraction = format(Decimal(text), "f").lstrip("-").partition(".")
    if max(len(whole.lstrip("0")), len(fraction), len((whole + fraction).strip("0"))) > 15:
        with pytest.raises(BadPredicate, match="at most 15 digits"):
            read_number(Reader(text))
        return
    read = read_number(Reader(text))
    assert Decimal(number_text(read)) == Decimal(text)
    assert read_number(Reader(number_text(read))) == read


@pytest.mark.parametrize(
    ("text", "plain"), [("1e3", "1000"), (".5", "0.5"), ("+3", "3"), ("-.25E1", "-2.5"), ("15e-1", "1.5")]
)
def test_numbers_as_programs_print_them(text: str, plain: str) -> None:
    assert number_text(read_number(Reader(text))) == plain


def test_zero_has_no_sign() -> None:
    assert number_text(read_number(Reader("-0.00"))) == "0"
    assert ordinal(-0.0) == ordinal(0.0) == 0


def test_what_an_application_means_is_rounded_to_what_can_be_written() -> None:
    assert plain_number(0.1 + 0.2) == 0.3
    assert plain_number(-0.0) == 0.0


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e20, 1e-20])
def test_what_cannot_be_written_is_refused(value: float) -> None:
    with pytest.raises(BadText):
        plain_number(value)


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_ordinals_are_in_the_order_of_floats(one: float, other: float) -> None:
    assert (ordinal(one) < ordinal(other)) == (one < other)
