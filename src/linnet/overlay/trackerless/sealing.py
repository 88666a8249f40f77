"""Answers to a search, sealed so that only who asked can read them, and only if it knows the topic.

The key comes of X25519 between a new key of the answerer and the one of the search, and of the ring's key:
nobody on the way has the first, and somebody who searches for topics of others has not the second. All
sealed answers have one length, and one that says nothing looks like all others.
"""

from __future__ import annotations

import hmac
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from nacl.bindings import crypto_scalarmult, crypto_scalarmult_base
from nacl.exceptions import RuntimeError as SodiumError

from linnet.core.errors import MalformedMessage, Refused
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason

KEY_BYTES = 32
SEALED = 560
"""Bytes of every answer: a descriptor with a filter of 1,024 bits and two addresses, and some to spare."""

_TAG_BYTES = 16
_LENGTH_BYTES = 2
ROOM = SEALED - KEY_BYTES - _TAG_BYTES - _LENGTH_BYTES
"""Bytes that an answer may have before it is sealed."""

_LABEL = b"linnet/overlay/sought/1"
_NONCE = bytes(12)  # each key seals one answer


class ReplyKey(NamedTuple):
    """The key of one search. Its secret half does not show where it is printed."""

    secret: bytes
    public: bytes

    def __repr__(self) -> str:
        return f"ReplyKey(public={self.public.hex()[:12]}…)"


def reply_key(entropy: Entropy) -> ReplyKey:
    """A new key."""
    secret = entropy(KEY_BYTES)
    return ReplyKey(secret, crypto_scalarmult_base(secret))


def seal_answer(to: bytes, ring: bytes, request: bytes, answer: bytes, entropy: Entropy) -> bytes:
    """An answer for whoever holds the secret of `to` and the ring's key; `Refused` if it is too long."""
    if len(answer) > ROOM:
        raise Refused(Reason.TOO_LARGE, f"an answer of {len(answer)} bytes, {ROOM} at most")
    own = reply_key(entropy)
    key = _key(_agree(own.secret, to), ring, request, own.public, to)
    padded = len(answer).to_bytes(_LENGTH_BYTES, "big") + answer + bytes(ROOM - len(answer))
    return own.public + ChaCha20Poly1305(key).encrypt(_NONCE, padded, b"")


def open_answer(key: ReplyKey, ring: bytes, request: bytes, sealed: bytes) -> bytes | None:
    """What was sealed to us under this ring's key; None if it is of another topic, or says nothing."""
    if len(sealed) != SEALED:
        return None
    theirs = sealed[:KEY_BYTES]
    try:
        derived = _key(_agree(key.secret, theirs), ring, request, theirs, key.public)
        padded = ChaCha20Poly1305(derived).decrypt(_NONCE, sealed[KEY_BYTES:], b"")
    except (InvalidTag, MalformedMessage):
        return None
    length = int.from_bytes(padded[:_LENGTH_BYTES], "big")
    return padded[_LENGTH_BYTES : _LENGTH_BYTES + length]


def _agree(secret: bytes, public: bytes) -> bytes:
    try:
        return crypto_scalarmult(secret, public)
    except SodiumError as error:
        raise MalformedMessage("a public key of low order") from error


def _key(shared: bytes, ring: bytes, request: bytes, answerer: bytes, seeker: bytes) -> bytes:
    """HKDF-SHA256 (RFC 5869) with the ring's key as its salt; one block."""
    secret = hmac.digest(ring, shared, "sha256")
    return hmac.digest(secret, _LABEL + request + answerer + seeker + b"\x01", "sha256")
