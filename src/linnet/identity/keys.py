"""Ed25519 keys, made from given entropy so that simulated runs replay."""

from __future__ import annotations

import hashlib
from functools import lru_cache

from nacl.bindings import crypto_sign, crypto_sign_open, crypto_sign_seed_keypair
from nacl.exceptions import BadSignatureError

from linnet.core.errors import RemoteError
from linnet.core.ids import DeviceId
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason

SEED_BYTES = 32
SIGNATURE_BYTES = 64
_DEVICE_ID_BYTES = 8


class SigningKey:
    """A secret Ed25519 key. Its seed is what a key file holds; it never appears in a repr."""

    __slots__ = ("_secret", "public", "seed")

    def __init__(self, seed: bytes) -> None:
        if len(seed) != SEED_BYTES:
            raise ValueError(f"the seed of a key has {SEED_BYTES} bytes, not {len(seed)}")
        self.public, self._secret = crypto_sign_seed_keypair(seed)
        self.seed = seed

    @classmethod
    def generate(cls, entropy: Entropy) -> SigningKey:
        """Make a new key from this source of secret bytes."""
        return cls(entropy(SEED_BYTES))

    def sign(self, message: bytes) -> bytes:
        """Return the 64-byte signature over these bytes."""
        return crypto_sign(message, self._secret)[:SIGNATURE_BYTES]

    def __repr__(self) -> str:
        return f"SigningKey(public={self.public.hex()[:12]}…)"


def verify(public: bytes, message: bytes, signature: bytes) -> None:
    """Return if the signature is right; raise `RemoteError` with ``bad_signature`` otherwise."""
    try:
        crypto_sign_open(signature + message, public)
    except (BadSignatureError, ValueError, TypeError) as error:
        raise RemoteError(Reason.BAD_SIGNATURE, "the signature does not fit the key") from error


@lru_cache(maxsize=16_384)
def device_id(device_key: bytes) -> DeviceId:
    """Return the short name of a device key."""
    return DeviceId(hashlib.sha256(device_key).digest()[:_DEVICE_ID_BYTES])
