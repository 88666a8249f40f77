from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from linnet.core.errors import BadText
from linnet.identity.text import Sort, from_text, short, to_text

ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
payloads = st.binary(min_size=32, max_size=32)
sorts = st.sampled_from(list(Sort))


@given(sorts, payloads)
def test_text_gives_the_same_bytes_back(sort: Sort, payload: bytes) -> None:
    text = to_text(sort, payload)
    assert len(text) == 59
    assert text.startswith(sort)
    assert from_text(sort, text) == payload


@given(sorts, payloads, st.sampled_from(["{}", " {}", "{}\n", "\t{}  "]))
def test_spaces_around_and_capitals_do_no_harm(sort: Sort, payload: bytes, form: str) -> None:
    text = to_text(sort, payload)
    assert from_text(sort, form.format(text)) == payload
    assert from_text(sort, form.format(text.upper())) == payload


def test_a_known_id() -> None:
    text = "lp1aaaqeayeaudaocajbifqydiob4ibceqtcqkrmfyydenbwha5dyp26gwa"
    assert to_text(Sort.PERSON, bytes(range(32))) == text


@pytest.mark.parametrize("payload", [bytes(32), bytes(range(32)), b"\xff" * 32])
@pytest.mark.parametrize("sort", list(Sort))
def test_every_change_of_one_letter_is_noticed(sort: Sort, payload: bytes) -> None:
    text = to_text(sort, payload)
    for place in range(len(sort), len(text)):
        for letter in ALPHABET:
            if letter == text[place]:
                continue
            with pytest.raises(BadText, match="checksum"):
                from_text(sort, text[:place] + letter + text[place + 1 :])


@pytest.mark.parametrize("payload", [bytes(range(32)), bytes(range(100, 132))])
def test_two_letters_exchanged_are_noticed(payload: bytes) -> None:
    text = to_text(Sort.DEVICE, payload)
    for place in range(3, len(text) - 1):
        if text[place] == text[place + 1]:
            continue
        with pytest.raises(BadText, match="checksum"):
            from_text(Sort.DEVICE, text[:place] + text[place + 1] + text[place] + text[place + 2 :])


def test_a_truncated_id_says_how_much_is_missing() -> None:
    text = to_text(Sort.DEVICE, bytes(32))
    with pytest.raises(BadText, match=r"has 55 letters after ld1 instead of 56: some are missing"):
        from_text(Sort.DEVICE, text[:-1])
    for length in range(3, len(text)):
        with pytest.raises(BadText, match="some are missing"):
            from_text(Sort.DEVICE, text[:length])


def test_an_id_with_too_much_behind_it() -> None:
    with pytest.raises(BadText, match="there are too many"):
        from_text(Sort.DEVICE, to_text(Sort.DEVICE, bytes(32)) + "a")


@given(sorts, sorts, payloads)
def test_the_wrong_sort_is_named(wanted: Sort, given_sort: Sort, payload: bytes) -> None:
    assume(wanted is not given_sort)
    with pytest.raises(BadText, match=f"is a {given_sort.name.lower()} id where a {wanted.name.lower()} id"):
        from_text(wanted, to_text(given_sort, payload))


def test_the_prefix_is_under_the_checksum() -> None:
    as_device = Sort.DEVICE + to_text(Sort.PERSON, bytes(32))[3:]
    with pytest.raises(BadText, match="checksum"):
        from_text(Sort.DEVICE, as_device)


@pytest.mark.parametrize("letter", ["0", "1", "8", "9", "=", "-", " ", "ß", "\u017f", "\u0131", "\0", "🐦"])
def test_a_character_that_no_id_has(letter: str) -> None:
    text = to_text(Sort.TOPIC, bytes(32))
    with pytest.raises(BadText, match="a character that no id has"):
        from_text(Sort.TOPIC, text[:20] + letter + text[21:])


@given(sorts, st.text(max_size=200))
def test_any_text_is_an_id_or_bad_text(sort: Sort, text: str) -> None:
    with pytest.raises(BadText):
        from_text(sort, text)
    with pytest.raises(BadText):
        from_text(sort, sort + text)


def test_a_wrong_id_is_not_repeated_whole() -> None:
    with pytest.raises(BadText) as caught:
        from_text(Sort.EVENT, "x" * 100_000)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("length", [0, 31, 33])
def test_only_32_bytes_have_a_text(length: int) -> None:
    with pytest.raises(ValueError, match="an id has 32 bytes"):
        to_text(Sort.EVENT, bytes(length))


def test_the_short_form_cannot_be_parsed() -> None:
    assert short(Sort.DEVICE, bytes(32)) == "ld1aaaaaaa…"
    with pytest.raises(BadText):
        from_text(Sort.DEVICE, short(Sort.DEVICE, bytes(32)))
