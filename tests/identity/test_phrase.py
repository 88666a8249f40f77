from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.errors import BadText
from linnet.identity.words import WORDS, from_phrase, to_phrase, word_list

seeds = st.binary(min_size=32, max_size=32)

PUBLISHED = {
    "00" * 32: "abandon " * 23 + "art",
    "7f" * 32: "legal winner thank year wave sausage worth useful " * 2
    + "legal winner thank year wave sausage worth title",
    "80" * 32: "letter advice cage absurd amount doctor acoustic avoid " * 2
    + "letter advice cage absurd amount doctor acoustic bless",
    "ff" * 32: "zoo " * 23 + "vote",
    "68a79eaca2324873eacc50cb9c6eca8cc68ea5d936f98787c60c7ebc74e6ce7c": (
        "hamster diagram private dutch cause delay private meat slide toddler razor book happy fancy gospel "
        "tennis maple dilemma loan word shrug inflict delay length"
    ),
    "f585c11aec520db57dd353c69554b21a89b20fb0650966fa0a9d6f74fd989d8f": (
        "void come effort suffer camp survey warrior heavy shoot primary clutch crush open amazing screen "
        "patrol group space point ten exist slush involve unfold"
    ),
}
"""Test vectors of BIP-39."""


@pytest.mark.parametrize(("seed", "phrase"), PUBLISHED.items())
def test_published_phrases(seed: str, phrase: str) -> None:
    assert to_phrase(bytes.fromhex(seed)) == phrase
    assert from_phrase(phrase).hex() == seed


@given(seeds)
def test_a_phrase_gives_the_same_seed_back(seed: bytes) -> None:
    phrase = to_phrase(seed)
    assert len(phrase.split()) == WORDS
    assert from_phrase(phrase) == seed
    assert from_phrase("\n".join(word[:4].upper() for word in phrase.split())) == seed


@given(seeds, st.integers(0, WORDS - 1), st.sampled_from(word_list()))
def test_another_word_is_another_key_or_is_noticed(seed: bytes, place: int, word: str) -> None:
    words = to_phrase(seed).split()
    is_same = words[place] == word
    words[place] = word
    try:
        found: bytes | None = from_phrase(" ".join(words))
    except BadText:
        found = None
    assert (found == seed) == is_same


@pytest.mark.parametrize("count", [0, 1, 12, 23, 25, 48])
def test_a_phrase_of_another_length(count: int) -> None:
    with pytest.raises(BadText, match=f"has 24 words, and these are {count}"):
        from_phrase("zoo " * count)


def test_the_error_of_a_checksum_says_nothing_of_the_words() -> None:
    with pytest.raises(BadText) as caught:
        from_phrase("zoo " * 24)
    assert "zoo" not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("size", [0, 16, 31, 33])
def test_only_whole_seeds_have_a_phrase(size: int) -> None:
    with pytest.raises(ValueError, match=f"has 32 bytes, not {size}"):
        to_phrase(bytes(size))
