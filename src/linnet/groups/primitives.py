"""The cryptography beneath the groups: X25519, HKDF-SHA256, ChaCha20-Poly1305, and HPKE made of the three.

HPKE (RFC 9180, base mode, DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, ChaCha20-Poly1305, one message per
context) is put together here rather than called, since its ephemeral key must come from the given
entropy for runs to replay; the tests hold it against the RFC's vectors and another implementation.
Whatever does not open looks the same from outside, for whatever reason it does not.
"""

from __future__ import annotations

import hmac
from typing import Final, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from msgspec import Struct
from nacl.bindings import crypto_scalarmult, crypto_scalarmult_base
from nacl.exceptions import RuntimeError as SodiumError

from linnet.core.errors import MalformedMessage, RemoteError
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason

KEY_BYTES = 32
NONCE_BYTES = 12
TAG_BYTES = 16
HASH_BYTES = 32
HPKE_OVERHEAD = KEY_BYTES + TAG_BYTES

_HKDF_BLOCKS = 255


class Hidden(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A value that holds secrets: nothing of it shows when it is printed."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        return [("", "…")]


class KeyPair(NamedTuple):
    """An X25519 key. Its secret half does not show when it is printed."""

    secret: bytes
    public: bytes

    def __repr__(self) -> str:
        return f"KeyPair(public={self.public.hex()[:12]}…)"


def undecryptable() -> RemoteError:
    """Return the one error for everything that does not open."""
    return RemoteError(Reason.UNDECRYPTABLE, "it does not open")


def key_pair(entropy: Entropy) -> KeyPair:
    """Make a new key from this source of secret bytes."""
    secret = entropy(KEY_BYTES)
    return KeyPair(secret, crypto_scalarmult_base(secret))


def public_of(secret: bytes) -> bytes:
    """Return the public half of a key of ours."""
    return crypto_scalarmult_base(secret)


def agree(secret: bytes, public: bytes) -> bytes:
    """Return the secret that both sides share; `RemoteError` if the public key is invalid or of low order."""
    if len(public) != KEY_BYTES:
        raise MalformedMessage(f"a public key has {KEY_BYTES} bytes, not {len(public)}")
    try:
        return crypto_scalarmult(secret, public)
    except SodiumError as error:
        raise MalformedMessage("a public key of low order") from error


_FIELD = 2**255 - 19
_ORDER_EIGHT = (
    0x00B8495F16056286FDB1329CEB8D09DA6AC49FF1FAE35616AEB8413B7C7AEBE0,
    0x57119FD0DD4E22D8868E1C58C45C44045BEF839C55B1D0B1248C50A3BC959C5F,
)
_LOW_ORDER: Final = frozenset(
    number.to_bytes(KEY_BYTES, "little") for number in (0, 1, *_ORDER_EIGHT, _FIELD - 1, _FIELD, _FIELD + 1)
)
_TOP = KEY_BYTES - 1


def check_public(public: bytes) -> bytes:
    """Return a foreign key to which something can be encrypted; `RemoteError` if it is no such key.

    For keys that are taken now and used later: a member that could plant one of low order would make every
    later operation of ours fail.
    """
    if len(public) != KEY_BYTES:
        raise MalformedMessage(f"a public key has {KEY_BYTES} bytes, not {len(public)}")
    if public[:_TOP] + bytes((public[_TOP] & 0x7F,)) in _LOW_ORDER:
        raise MalformedMessage("a public key of low order")
    return public


def extract(salt: bytes, secret: bytes) -> bytes:
    """Compute the first half of HKDF-SHA256 (RFC 5869): a key from any secret."""
    return hmac.digest(salt, secret, "sha256")


def expand(key: bytes, info: bytes, length: int) -> bytes:
    """Compute the second half of HKDF-SHA256 (RFC 5869): `length` bytes from a key, for one use."""
    if not 0 < length <= _HKDF_BLOCKS * HASH_BYTES:
        raise ValueError(f"HKDF gives 1 to {_HKDF_BLOCKS * HASH_BYTES} bytes, not {length}")
    out = block = hmac.digest(key, info + b"\x01", "sha256")
    counter = 1
    while len(out) < length:
        counter += 1
        block = hmac.digest(key, block + info + bytes((counter,)), "sha256")
        out += block
    return out[:length]


def hkdf(salt: bytes, secret: bytes, info: bytes, length: int) -> bytes:
    """Compute HKDF-SHA256 (RFC 5869), both halves."""
    return expand(extract(salt, secret), info, length)


def seal(key: bytes, nonce: bytes, plaintext: bytes, bound: bytes) -> bytes:
    """Encrypt by ChaCha20-Poly1305 (RFC 8439), the tag at the end; `bound` is authenticated, not carried."""
    return ChaCha20Poly1305(key).encrypt(nonce, plaintext, bound)


def open_sealed(key: bytes, nonce: bytes, sealed: bytes, bound: bytes) -> bytes:
    """Return the sealed text; `RemoteError` with ``undecryptable`` if any bit of it has changed."""
    try:
        return ChaCha20Poly1305(key).decrypt(nonce, sealed, bound)
    except InvalidTag:
        raise undecryptable() from None


_KEM = b"KEM\x00\x20"
_SUITE = b"HPKE\x00\x20\x00\x01\x00\x03"
_VERSION = b"HPKE-v1"


def _labelled(suite: bytes, salt: bytes, label: bytes, secret: bytes) -> bytes:
    return extract(salt, _VERSION + suite + label + secret)


def _expanded(suite: bytes, key: bytes, label: bytes, info: bytes, length: int) -> bytes:
    return expand(key, length.to_bytes(2, "big") + _VERSION + suite + label + info, length)


_NO_PSK = _labelled(_SUITE, b"", b"psk_id_hash", b"")


def _schedule(shared: bytes, encapsulated: bytes, public: bytes, info: bytes) -> tuple[bytes, bytes]:
    """Return key and nonce of the one message (RFC 9180, sections 4.1 and 5.1, base mode)."""
    secret = _expanded(
        _KEM, _labelled(_KEM, b"", b"eae_prk", shared), b"shared_secret", encapsulated + public, HASH_BYTES
    )
    context = b"\x00" + _NO_PSK + _labelled(_SUITE, b"", b"info_hash", info)
    root = _labelled(_SUITE, secret, b"secret", b"")
    return (
        _expanded(_SUITE, root, b"key", context, KEY_BYTES),
        _expanded(_SUITE, root, b"base_nonce", context, NONCE_BYTES),
    )


def hpke_seal(public: bytes, info: bytes, plaintext: bytes, entropy: Entropy, bound: bytes = b"") -> bytes:
    """Encrypt for the holder of the secret half: the encapsulated key (32 bytes), then the ciphertext."""
    ephemeral = key_pair(entropy)
    key, nonce = _schedule(agree(ephemeral.secret, public), ephemeral.public, public, info)
    return ephemeral.public + seal(key, nonce, plaintext, bound)


def hpke_open(secret: bytes, info: bytes, sealed: bytes, bound: bytes = b"") -> bytes:
    """Return the text that `hpke_seal` sealed; `RemoteError` with ``undecryptable`` if it does not open."""
    encapsulated = sealed[:KEY_BYTES]
    try:
        shared = agree(secret, encapsulated)
    except MalformedMessage:
        raise undecryptable() from None
    key, nonce = _schedule(shared, encapsulated, public_of(secret), info)
    return open_sealed(key, nonce, sealed[KEY_BYTES:], bound)
