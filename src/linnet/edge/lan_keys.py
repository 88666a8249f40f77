"""What a node is called on a local network: a key of its own for each network and day.

Whoever only listens cannot tell that a device seen on one network is one seen on another, or the day
before: the keys come from a secret of the node and share nothing (RFC 5869). What a network is
called is known to this node alone; it never leaves it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from linnet.identity.keys import SEED_BYTES, SigningKey

NETWORK_BYTES = 32
CORE = bytes(NETWORK_BYTES)
"""The name of the internet, which is a network like others for the policy."""

DAY = 86_400
_NETWORK = b"linnet/lan/network/1"
_SECRET = b"linnet/lan/secret/1"
_KEY = b"linnet/lan/key/1"


def network_id(facts: Iterable[bytes]) -> bytes:
    """What a network is called, from what tells it from others: its gateway, its prefix."""
    digest = hashlib.sha256(_NETWORK)
    for fact in facts:
        digest.update(len(fact).to_bytes(4, "big"))
        digest.update(fact)
    return digest.digest()


def day_of(now: float) -> int:
    """Days since 1970."""
    return int(now // DAY)


def node_secret(device: SigningKey) -> bytes:
    """The secret that all keys of local networks come from; it tells nothing of the device key."""
    return _derived(device.seed, b"", _SECRET)


def lan_key(secret: bytes, network: bytes, day: int) -> SigningKey:
    """What this node is called on this network on this day."""
    return SigningKey(_derived(secret, network, _KEY + day.to_bytes(8, "big")))


def _derived(secret: bytes, salt: bytes, info: bytes) -> bytes:
    return HKDF(SHA256(), SEED_BYTES, salt, info).derive(secret)
