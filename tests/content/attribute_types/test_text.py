"""Texts and how they begin."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.content.attribute_types.text import CHARACTERS, Words, read_words
from linnet.content.predicate_reader import BadPredicate, Reader
from linnet.core.errors import BadText
from linnet.testing.predicates import words


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
