"""Every kind of attribute, in one list. A new kind is a module beside this one, and an entry here.

A condition is what a predicate asks of one attribute. An event's attribute is a condition of a single value,
so that *does this event match* and *does this predicate cover that one* are the same question.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec import Struct

from linnet.content.attribute_types.geo_box import Box, read_box, read_point
from linnet.content.attribute_types.numbers import BEGINS, DateRange, NumberRange, read_exactly, read_span
from linnet.content.attribute_types.text import TOPIC, Topic, Words, read_words
from linnet.content.predicate_reader import Reader
from linnet.content.structures.conditions import Beginnings, Boxes, Finder, Spans

Condition: TypeAlias = Topic | NumberRange | DateRange | Words | Box


class Form(Struct, frozen=True):
    """How a kind is written: which characters begin it, and what reads it from there."""

    begins: str
    read: Callable[[Reader], Condition]


RANGES = (Form("[(", read_span), Form("{", read_box))
"""What may follow a name directly."""

VALUES = (Form(BEGINS, read_exactly), Form('"', read_words), Form("{", read_point))
"""What may follow a name and ``=``."""

FINDERS: dict[type, Callable[[], Finder[Any]]] = {
    NumberRange: Spans,
    DateRange: Spans,
    Words: Beginnings,
    Box: Boxes,
}
"""What finds those that accept a value among many of a kind. A topic needs none: it is there or not."""

AFTER_NAME = "".join(form.begins for form in RANGES)


def read_condition(reader: Reader) -> Condition:
    """What follows a name: a range, ``=`` and a value, or nothing."""
    if reader.take("="):
        return _read(reader, VALUES, 'a value: a number, a date, "text" or {latitude,longitude}')
    following = reader.peek()
    if following and following in AFTER_NAME:
        return _read(reader, RANGES, "a range")
    return TOPIC


def _read(reader: Reader, forms: tuple[Form, ...], expected: str) -> Condition:
    following = reader.peek()
    for form in forms:
        if following and following in form.begins:
            return form.read(reader)
    reader.fail(expected)


def covers(one: Condition, other: Condition) -> bool:
    """Whether one accepts all that the other does; conditions of two kinds have nothing in common."""
    return type(one) is type(other) and one.covers(other)  # type: ignore[arg-type] # of one type


def merged(one: Condition, other: Condition) -> Condition | None:
    """What accepts exactly what either of two conditions does, if a single condition can."""
    return one.merged(other) if type(one) is type(other) else None  # type: ignore[arg-type] # of one type
