from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import pytest
from msgspec import Meta, Struct, inspect

from linnet.node.config_problems import Problem, allowed, problems


class Color(StrEnum):
    RED = "red"
    BLUE = "blue"


class Inner(Struct):
    size: Annotated[int, Meta(ge=2, le=9)]
    color: Color = Color.RED


class Outer(Struct):
    inner: Inner
    many: Annotated[tuple[Inner, ...], Meta(max_length=1)] = ()
    named: dict[str, Inner] = {}
    period: float = 1.0
    limit: int | None = None


OUTER = inspect.type_info(Outer)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (bool, "true or false"),
        (int, "a whole number above 0"),
        (float, "a number above 0"),
        (Annotated[int, Meta(ge=0)], "a whole number from 0 on"),
        (Annotated[int, Meta(ge=2, le=9)], "a whole number from 2 to 9"),
        (Annotated[float, Meta(gt=5)], "a number above 5"),
        (str, "text"),
        (Annotated[str, Meta(max_length=4)], "text of at most 4 characters"),
        (Annotated[tuple[str, ...], Meta(max_length=3)], "a list of text, 3 at most"),
        (Color, 'one of "red", "blue"'),
        (int | None, "a whole number above 0"),
        (Inner, "a table"),
    ],
)
def test_what_is_allowed_is_told_in_words(kind: object, words: str) -> None:
    assert allowed(inspect.type_info(kind)) == words


def test_each_problem_has_its_place() -> None:
    tree = {
        "inner": {"size": 1, "colour": "red"},
        "many": [{"size": 2}, {"size": 2}],
        "named": {"x": {"size": 2, "color": "green"}, "y": 5},
        "period": float("inf"),
        "limit": False,
        "other": 1,
    }
    assert [problem.path for problem in problems(tree, OUTER, ())] == [
        ("inner", "size"),
        ("inner", "colour"),
        ("many",),
        ("named", "x", "color"),
        ("named", "y"),
        ("period",),
        ("limit",),
        ("other",),
    ]


def test_what_is_right_has_no_problem() -> None:
    tree = {"inner": {"size": 2}, "many": [{"size": 9, "color": "blue"}], "period": 1, "limit": 7}
    assert problems(tree, OUTER, ()) == []


def test_what_is_missing_is_named() -> None:
    assert problems({}, OUTER, ("here",)) == [Problem(("here",), "inner is missing; it is a table")]
