from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.errors import BadText
from linnet.identity.words import PREFIX_LETTERS, read_words, word_list

words = st.lists(st.sampled_from(word_list()), min_size=1, max_size=30)


def test_the_list_is_the_one_of_bip_39() -> None:
    """A list that changed would make every phrase on paper another key."""
    written = "".join(f"{word}\n" for word in word_list()).encode()
    expected = "2f5eed53a4727b4bf8880d8f3f199efc90e58503646d9ff8eff3a2ed3b24dbda"
    assert hashlib.sha256(written).hexdigest() == expected


def test_four_letters_know_a_word() -> None:
    assert len({word[:PREFIX_LETTERS] for word in word_list()}) == len(word_list()) == 2048


@given(words, st.sampled_from([" ", "\n", " \t ", "\u3000", ", ", ". "]), st.booleans(), st.booleans())
def test_words_as_people_type_them(chosen: list[str], between: str, capitals: bool, short: bool) -> None:
    typed = [word[:PREFIX_LETTERS] if short else word for word in chosen]
    text = f"  {between.join(typed)}\n"
    assert read_words(text.upper() if capitals else text) == chosen


def test_a_numbered_list_is_read() -> None:
    assert read_words(" 1 zoo   2 act\n 3. actor  4) action 12: abandon") == [
        "zoo",
        "act",
        "actor",
        "action",
        "abandon",
    ]


def test_a_short_word_is_itself_and_not_the_beginning_of_others() -> None:
    assert read_words("act acti add addr") == ["act", "action", "add", "address"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("zoo abandn", "word 2 'abandn' is not in the list (nearest: abandon"),
        ("zeb", "word 1 'zeb' is not in the list (nearest: zebra"),
        ("zoos", "word 1 'zoos' is not in the list (nearest: zoo"),
        ("\x1b[2J", r"word 1 '\x1b[2j' is not in the list"),
        ("q" * 5000, f"word 1 '{'q' * 24}…' is not in the list"),
    ],
)
def test_each_wrong_word_is_named_with_its_place_and_what_is_near(text: str, said: str) -> None:
    with pytest.raises(BadText) as caught:
        read_words(text)
    assert str(caught.value).startswith(said)


def test_places_are_told_from_where_the_reader_is() -> None:
    with pytest.raises(BadText, match=r"^word 8 'abandn'"):
        read_words("zoo abandn", first=7)


def test_a_message_names_a_few_and_counts_the_rest() -> None:
    with pytest.raises(BadText, match=r"word 1 .*; word 4 .*; and 20 more$"):
        read_words("qqqq " * 24)
