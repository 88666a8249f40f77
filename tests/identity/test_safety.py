from __future__ import annotations

import hashlib
import re
from functools import reduce

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linnet.identity.safety import compare, safety_number, safety_words
from linnet.identity.words import word_list

ADA, BEA = bytes(range(32)), bytes(range(32, 64))
LEAST, MOST = bytes(32), b"\xff" * 32
keys = st.binary(min_size=32, max_size=32)

KNOWN = [
    (
        ADA,
        BEA,
        "44598 90954 18689 89346 60783 69415 16464 64427 29777 34646 10693 99697",
        "puppy parade burger wagon real shiver loud lizard always winner manual bid sadness move vital",
    ),
    (
        LEAST,
        MOST,
        "67065 23306 01045 23852 81768 65902 26696 92467 83302 39242 68642 60545",
        "forward bicycle blood any winter misery region pattern media capital supreme pulse essay jealous "
        "void",
    ),
]


@pytest.mark.parametrize(("ours", "theirs", "number", "words"), KNOWN)
def test_known_answers(ours: bytes, theirs: bytes, number: str, words: str) -> None:
    """People have compared these: another number for the same keys would look like an attack."""
    assert safety_number(ours, theirs) == number
    assert safety_words(ours, theirs) == words


def test_it_is_what_its_description_says() -> None:
    both = ADA + BEA
    first = hashlib.sha256(b"linnet/safety/1" + both).digest()
    last = reduce(lambda digest, _: hashlib.sha256(digest + both).digest(), range(5200), first)
    number = safety_number(BEA, ADA).replace(" ", "")
    assert int(number) == int(last.hex(), 16) % 10**60
    bits = "".join(f"{word_list().index(word):011b}" for word in safety_words(BEA, ADA).split())
    assert f"{int(last.hex(), 16):0256b}".startswith(bits)
    assert len(bits) == 165


@settings(max_examples=15, deadline=None)
@given(keys, keys)
def test_both_have_the_same_in_their_form(ours: bytes, theirs: bytes) -> None:
    number = safety_number(ours, theirs)
    assert number == safety_number(theirs, ours)
    assert re.fullmatch(r"\d{5}( \d{5}){11}", number)
    assert safety_words(ours, theirs) == safety_words(theirs, ours)


def test_one_bit_of_a_key_changes_both() -> None:
    other = bytes([BEA[0] ^ 1]) + BEA[1:]
    assert safety_number(ADA, BEA) != safety_number(ADA, other)
    assert safety_words(ADA, BEA) != safety_words(ADA, other)


@pytest.mark.parametrize("spaced", ["{}", " {}\n", "\t{}"])
def test_spaces_and_capitals_do_not_matter(spaced: str) -> None:
    number, words = safety_number(ADA, BEA), safety_words(ADA, BEA)
    for text in (number, number.replace(" ", ""), number.replace(" ", "\n"), number.replace(" ", "-")):
        assert compare(spaced.format(text), BEA, ADA)
    for text in (words, words.upper(), words.replace(" ", "\n  "), " ".join(w[:4] for w in words.split())):
        assert compare(spaced.format(text), BEA, ADA)


@pytest.mark.parametrize("text", ["", " ", "44598", "44598 90954", "puppy", "puppy parade", "٤" * 60, "no"])
def test_a_part_or_something_else_is_not_the_same(text: str) -> None:
    assert not compare(text, ADA, BEA)


def test_every_slip_is_seen() -> None:
    number, words = safety_number(ADA, BEA), safety_words(ADA, BEA)
    for place in (0, 30, 70):
        wrong = number[:place] + str((int(number[place]) + 1) % 10) + number[place + 1 :]
        assert not compare(wrong, ADA, BEA)
    assert not compare(number + "0", ADA, BEA)
    assert not compare(words.replace("parade", "parent"), ADA, BEA)
    assert not compare(words + " zoo", ADA, BEA)
    assert not compare(words.replace("puppy parade", "parade puppy"), ADA, BEA)


def test_only_whole_keys_have_one() -> None:
    with pytest.raises(ValueError, match="a person key has 32 bytes"):
        safety_number(ADA, BEA[:31])
    with pytest.raises(ValueError, match="a person key has 32 bytes"):
        compare("1", ADA + b"x", BEA)
