from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from linnet.trace.canonical import FIELDS, ROW, Numbers


def test_a_row_has_a_place_for_each_field_and_no_padding() -> None:
    values = tuple(range(len(FIELDS)))
    assert ROW.unpack(ROW.pack(*values)) == values
    assert ROW.size == 60


@given(st.lists(st.none() | st.binary(max_size=2)))
def test_numbers_stand_for_values_in_the_order_of_appearance(values: list[bytes | None]) -> None:
    numbers: Numbers[bytes] = Numbers()
    given_out = [numbers[value] for value in values]
    names = list(numbers)
    assert [names[number] for number in given_out] == values
    assert names == list(dict.fromkeys([None, *values]))
    assert numbers[None] == 0
