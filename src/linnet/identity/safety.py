"""Safety numbers, which two people compare, by voice or side by side, to verify each other's keys.

Both get the same number, since the keys are sorted first. Somebody between them would have to find two
keys of his own whose numbers agree, one for each side: a collision. For 60 digits that takes about
2^99 tries, for the words about 2^82, and each try costs `ITERATIONS` hashes, as in Signal's numbers.
"""

from __future__ import annotations

import hashlib

from linnet.core.errors import BadText
from linnet.identity.words import BITS, read_words, word_list

LABEL = b"linnet/safety/1"
ITERATIONS = 5200
GROUPS = 12
GROUP_DIGITS = 5
WORDS = 15
"""Twelve words would take 2^78 hashes to forge, which some can afford."""

_DIGITS = GROUPS * GROUP_DIGITS
_KEY_BYTES = 32
_HASH_BITS = 256


def safety_number(ours: bytes, theirs: bytes) -> str:
    """Return the number of two person keys: 60 digits, in 12 groups of 5."""
    digits = f"{_fingerprint(ours, theirs) % 10**_DIGITS:0{_DIGITS}d}"
    return " ".join(digits[at : at + GROUP_DIGITS] for at in range(0, _DIGITS, GROUP_DIGITS))


def safety_words(ours: bytes, theirs: bytes) -> str:
    """Return the same number as 15 words, which are easier to read aloud."""
    top = _fingerprint(ours, theirs) >> (_HASH_BITS - WORDS * BITS)
    words = word_list()
    places = (top >> (BITS * place) & (len(words) - 1) for place in reversed(range(WORDS)))
    return " ".join(words[place] for place in places)


def compare(text: str, ours: bytes, theirs: bytes) -> bool:
    """Return whether a text has all digits or all words of two people's number, however it is spaced."""
    digits = "".join(text.split()).replace("-", "")
    if digits.isascii() and digits.isdigit():
        return digits == safety_number(ours, theirs).replace(" ", "")
    try:
        return " ".join(read_words(text)) == safety_words(ours, theirs)
    except BadText:
        return False


def _fingerprint(ours: bytes, theirs: bytes) -> int:
    """Compute h(0) = H(label ‖ keys), h(n) = H(h(n-1) ‖ keys), the lesser key first."""
    if len(ours) != _KEY_BYTES or len(theirs) != _KEY_BYTES:
        raise ValueError(f"a person key has {_KEY_BYTES} bytes")
    keys = b"".join(sorted((ours, theirs)))
    digest = hashlib.sha256(LABEL + keys).digest()
    for _ in range(ITERATIONS):
        digest = hashlib.sha256(digest + keys).digest()
    return int.from_bytes(digest, "big")
