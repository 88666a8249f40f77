"""Conditions of every kind, in one list."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from tests.content.predicates import conditions

from linnet.content.attribute_types.numbers import NumberRange
from linnet.content.attribute_types.text import TOPIC, BadPredicate, Reader
from linnet.content.predicate import RANGES, VALUES, Condition, covers, merged, read_condition


@given(conditions())
def test_every_kind_is_read_as_it_is_written(condition: Condition) -> None:
    assert read_condition(Reader(condition.text)) == condition


@given(conditions(), conditions())
def test_kinds_have_nothing_in_common(one: Condition, other: Condition) -> None:
    if type(one) is not type(other):
        assert not covers(one, other)
        assert merged(one, other) is None


def test_no_character_begins_two_kinds() -> None:
    for forms in (RANGES, VALUES):
        begins = "".join(form.begins for form in forms)
        assert len(set(begins)) == len(begins)
    assert len(get_args(Condition)) == 5


def test_a_topic_and_a_range_of_one_name_are_not_mixed_up() -> None:
    assert not covers(TOPIC, NumberRange(0, 1))
    assert not covers(NumberRange(0, 1), TOPIC)


def test_an_unknown_value_is_pointed_at() -> None:
    with pytest.raises(BadPredicate, match="character 2: expected a value"):
        read_condition(Reader("=x"))
