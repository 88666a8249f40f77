"""A secret key as 24 words on paper.

BIP-39: 32 bytes and the first 8 bits of their SHA-256 are 264 bits, 11 to a word. The words are the
key itself; nothing is derived from them, so they are as secret as the key file.
"""

from __future__ import annotations

from linnet.core.errors import BadText
from linnet.identity.keys import SEED_BYTES
from linnet.identity.words import mnemonic, read_words

WORDS = 24


def to_phrase(seed: bytes) -> str:
    """The words of a key's seed, with a space between them."""
    if len(seed) != SEED_BYTES:
        raise ValueError(f"the seed of a key has {SEED_BYTES} bytes, not {len(seed)}")
    return mnemonic().to_mnemonic(seed)


def from_phrase(text: str) -> bytes:
    """The seed that these words are; `BadText` says which of them cannot be right.

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
