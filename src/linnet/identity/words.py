"""The 2,048 words that secrets and fingerprints are written in, and reading them as people type them.

The list is the English one of BIP-39: short words, each known by its first four letters. A secret key is 24
of them on paper: 32 bytes and the first 8 bits of their SHA-256 are 264 bits, 11 to a word. The words are
the key itself; nothing is derived from them, so they are as secret as the key file.
"""

from __future__ import annotations

import re
import unicodedata
from difflib import get_close_matches
from functools import lru_cache

from mnemonic import Mnemonic

from linnet.core.errors import BadText
from linnet.identity.keys import SEED_BYTES

BITS = 11
"""Bits that one word encodes."""

PREFIX_LETTERS = 4
"""Letters by which a word is known."""

_NEAREST = 3
_TOLD = 4  # wrong words that a message names
_SHOWN = 24  # letters of a wrong word that a message repeats
_NUMBER = re.compile(r"\d{1,2}")


@lru_cache(maxsize=1)
def mnemonic() -> Mnemonic:
    """Return the word list with its code, read once."""
    return Mnemonic("english")


def word_list() -> list[str]:
    """Return all words in their order; not to be changed."""
    return mnemonic().wordlist


def read_words(text: str, first: int = 1) -> list[str]:
    """Read the words of a text, whole, in any case, with any spaces; `BadText` names each unknown one.

    Four letters stand for a word. Commas, dots and the numbers of a numbered list are passed over. Errors
    count the words from `first`.
    """
    typed = [part.strip(".,;:)") for part in unicodedata.normalize("NFKC", text).casefold().split()]
    typed = [part for part in typed if part and not _NUMBER.fullmatch(part)]
    found = [_word(part) for part in typed]
    wrong = [
        f"word {place} {_shown(part)!r} is not in the list{_hint(part)}"
        for place, (part, word) in enumerate(zip(typed, found, strict=True), first)
        if word is None
    ]
    if wrong:
        more = f"; and {len(wrong) - _TOLD} more" if len(wrong) > _TOLD else ""
        raise BadText("; ".join(wrong[:_TOLD]) + more)
    return [word for word in found if word is not None]


def _word(typed: str) -> str | None:
    words = word_list()
    if typed in words:
        return typed
    if len(typed) < PREFIX_LETTERS:
        return None
    return next((word for word in words if word.startswith(typed)), None)


def _hint(typed: str) -> str:
    words = word_list()
    near = [word for word in words if typed and word.startswith(typed)]
    near += [word for word in get_close_matches(typed[:_SHOWN], words, _NEAREST) if word not in near]
    return f" (nearest: {', '.join(near[:_NEAREST])})" if near else ""


def _shown(typed: str) -> str:
    return typed if len(typed) <= _SHOWN else typed[:_SHOWN] + "…"


WORDS = 24
"""Words of a key."""


def to_phrase(seed: bytes) -> str:
    """Return the words of a key's seed, with a space between them."""
    if len(seed) != SEED_BYTES:
        raise ValueError(f"the seed of a key has {SEED_BYTES} bytes, not {len(seed)}")
    return mnemonic().to_mnemonic(seed)


def from_phrase(text: str) -> bytes:
    """Return the seed of these words; `BadText` tells which of them cannot be right.

    A checksum of 8 bits lets one wrong phrase in 256 pass: show whose key it is.
    """
    words = read_words(text)
    if len(words) != WORDS:
        raise BadText(f"a phrase has {WORDS} words, and these are {len(words)}")
    try:
        return bytes(mnemonic().to_entropy(words))
    except ValueError:
        # Without its cause: nothing of the secret may stand in a traceback.
        raise BadText(
            "the checksum of this phrase fails: each is a word of the list, but one is another than was "
            "written down, or two have changed places"
        ) from None
