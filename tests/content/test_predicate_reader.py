"""Errors point at the character."""

from __future__ import annotations

import re

import pytest

from linnet.content.predicate_reader import BadPredicate, Reader


def test_spaces_between_parts_mean_nothing() -> None:
    reader = Reader("  a  / b")
    assert reader.match(re.compile("[a-z]")) is not None
    assert reader.take("/") == "/"
    assert reader.take("/") == ""
    assert reader.peek() == "b"


def test_the_place_is_marked_under_the_text() -> None:
    error = BadPredicate("price[10;20]", 8, "a comma")
    assert str(error) == "character 9: expected a comma, found ';'\n  price[10;20]\n          ^"


def test_a_text_that_ends_too_early_says_so() -> None:
    reader = Reader("a")
    reader.at = 1
    with pytest.raises(BadPredicate, match="character 2: expected more, found the end"):
        reader.fail("more")


def test_of_a_long_text_only_the_place_is_shown_and_nothing_that_harms_a_terminal() -> None:
    error = BadPredicate("x" * 500 + "\x1b[2J" + "y" * 500, 500, "a name")
    first, excerpt, mark = str(error).splitlines()
    assert "\x1b" not in str(error)
    assert len(excerpt) < 100
    assert excerpt[mark.index("^")] == "\ufffd"
    assert first == "character 501: expected a name, found '\ufffd'"
