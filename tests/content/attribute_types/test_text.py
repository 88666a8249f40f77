"""What is read, and where it cannot be; texts and how they begin; topics."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.content.predicates import words

from linnet.content.attribute_types.text import (
    CHARACTERS,
    TOPIC,
    BadPredicate,
    Reader,
    Topic,
    Words,
    read_words,
)
from linnet.core.errors import BadText


@given(words())
def test_text_and_words_are_the_same(each: Words) -> None:
    assert read_words(Reader(each.text[1:])) == each


@given(words(), words(), st.text(alphabet='ab"\\', max_size=4).map(Words))
def test_cover_and_merge_accept_exactly_what_they_should(one: Words, other: Words, said: Words) -> None:
    if one.covers(other) and other.covers(said):
        assert one.covers(said)
    merged = one.merged(other)
    if merged is not None:
        assert merged.covers(said) == (one.covers(said) or other.covers(said))


def test_a_beginning_covers_what_begins_so() -> None:
    beginning = Words("ab", whole=False)
    assert [beginning.covers(Words(text)) for text in ("ab", "abc", "a", "b")] == [True, True, False, False]
    assert not Words("ab").covers(Words("abc"))
    assert not Words("ab").covers(Words("ab", whole=False))


@pytest.mark.parametrize(
    ("text", "at"), [("x", 0), ('"ab', 3), ('"a\\x"', 3), ('"\x07"', 1), ('"' + "x" * 65 + '"', 1)]
)
def test_what_is_wrong_with_a_text_is_pointed_at(text: str, at: int) -> None:
    with pytest.raises(BadPredicate) as caught:
        read_words(Reader(text))
    assert caught.value.at == at


def test_two_ways_to_write_a_letter_are_one_text() -> None:
    assert read_words(Reader('"a\u0308"')) == Words("ä")


@pytest.mark.parametrize("text", ["x" * (CHARACTERS + 1), "\n", "a\u0308"])
def test_texts_that_cannot_be_are_not_made(text: str) -> None:
    with pytest.raises(BadText):
        Words(text)


def test_a_topic_is_a_name_and_nothing_else() -> None:
    assert TOPIC.text == ""
    assert TOPIC.exact
    assert TOPIC.covers(Topic())
    assert TOPIC.merged(Topic()) == TOPIC


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
