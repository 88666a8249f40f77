"""The 2,048 words that secrets and fingerprints are written in, and reading them as people type them.

The list is the English one of BIP-39: short words, each known by its first four letters.
"""

from __future__ import annotations

import re
import unicodedata
from difflib import get_close_matches
from functools import lru_cache

from mnemonic import Mnemonic

from linnet.core.errors import BadText

BITS = 11
"""What one word says."""

PREFIX_LETTERS = 4
"""Letters by which a word is known."""

_NEAREST = 3
_TOLD = 4  # wrong words that a message names
_SHOWN = 24  # letters of a wrong word that a message repeats
_NUMBER = re.compile(r"\d{1,2}")


@lru_cache(maxsize=1)
def mnemonic() -> Mnemonic:
    """The word list with its code, read once."""
    return Mnemonic("english")


def word_list() -> list[str]:
    """All words in their order; not to be changed."""
    return mnemonic().wordlist


def read_words(text: str, first: int = 1) -> list[str]:
    """The words in a text, whole, in any case, with any spaces; `BadText` names each that is none.

    Four letters stand for a word. Commas, dots and the numbers of a numbered list are passed over. The
    first word is told as the `first`.
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
