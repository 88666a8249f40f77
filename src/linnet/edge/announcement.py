"""The announcement of a node on a local network: a key for each network and day, a datagram, and a hint.

The datagram names no topic and no device::

    magic 4 | version 1 | lan key 32 | port 2 | nonce 8 | signature 64

All fields have fixed widths; numbers are big-endian. The signature is made with the lan key, over a tag and
all fields before it. The nonce stays the same as long as the rest does, so that a repeated announcement is
the same bytes, and its signature is checked once.

A listener cannot tell that a device on one network is the same as one on another network, or on the day
before: the lan keys are derived from a secret of the node and share nothing (RFC 5869). Only this node knows
the name of a network; it never leaves it.
"""

from __future__ import annotations

import base64
import hashlib
import struct
from collections.abc import Iterable

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from msgspec import Struct

from linnet.core.errors import MalformedMessage, RemoteError
from linnet.core.reasons import Reason
from linnet.identity.keys import SEED_BYTES, SigningKey, verify

MOST_BYTES = 256
"""The most bytes of a datagram that are read; a later version may be longer than this one."""
NONCE_BYTES = 8
VERSION = 1

_MAGIC = b"lnLA"
_SIGNED_TAG = b"linnet/lan/announcement/1"
_LAYOUT = struct.Struct(f">4sB32sH{NONCE_BYTES}s64s")
_SIGNED = _LAYOUT.size - 64
ANNOUNCEMENT_BYTES = _LAYOUT.size


class Announcement(Struct, frozen=True, gc=False):
    """The content of a datagram; its signature is checked separately."""

    lan: bytes
    """The sender's key on this network."""
    port: int
    """The TCP port at which it accepts links, at the address that the datagram came from."""
    nonce: bytes


def make_announcement(key: SigningKey, port: int, nonce: bytes) -> bytes:
    """Make the datagram that announces the holder of this key."""
    body = _LAYOUT.pack(_MAGIC, VERSION, key.public, port, nonce, b"")[:_SIGNED]
    return body + key.sign(_SIGNED_TAG + body)


def read_announcement(datagram: bytes) -> Announcement:
    """Parse a datagram; raises `RemoteError` if it is no announcement of a known version."""
    if len(datagram) > MOST_BYTES:
        raise RemoteError(Reason.TOO_LARGE, f"{len(datagram)} bytes")
    if datagram[:4] != _MAGIC or len(datagram) < len(_MAGIC) + 1:
        raise MalformedMessage("no announcement of ours")
    if datagram[4] != VERSION:
        raise RemoteError(Reason.UNSUPPORTED, f"version {datagram[4]}")
    if len(datagram) != _LAYOUT.size:
        raise MalformedMessage(f"{len(datagram)} bytes instead of {_LAYOUT.size}")
    _, _, lan, port, nonce, _ = _LAYOUT.unpack(datagram)
    if port == 0:
        raise MalformedMessage("no port")
    return Announcement(lan, port, nonce)


def check_announcement(datagram: bytes, lan: bytes) -> None:
    """Raise `RemoteError` unless this key signed the datagram, which must have been parsed."""
    verify(lan, _SIGNED_TAG + datagram[:_SIGNED], datagram[_SIGNED:])


NETWORK_BYTES = 32
CORE = bytes(NETWORK_BYTES)
"""The name of the internet, which the policy treats as one more network."""

DAY = 86_400
_NETWORK_TAG = b"linnet/lan/network/1"
_SECRET_TAG = b"linnet/lan/secret/1"
_KEY_TAG = b"linnet/lan/key/1"


def network_id(facts: Iterable[bytes]) -> bytes:
    """Derive the name of a network from facts that identify it: its gateway, its prefix."""
    digest = hashlib.sha256(_NETWORK_TAG)
    for fact in facts:
        digest.update(len(fact).to_bytes(4, "big"))
        digest.update(fact)
    return digest.digest()


def day_of(now: float) -> int:
    """Return the number of days since 1970."""
    return int(now // DAY)


def node_secret(device: SigningKey) -> bytes:
    """Return the secret from which all lan keys are derived; it reveals nothing of the device key."""
    return _derived(device.seed, b"", _SECRET_TAG)


def lan_key(secret: bytes, network: bytes, day: int) -> SigningKey:
    """Derive the key of this node on this network on this day."""
    return SigningKey(_derived(secret, network, _KEY_TAG + day.to_bytes(8, "big")))


def _derived(secret: bytes, salt: bytes, info: bytes) -> bytes:
    return HKDF(SHA256(), SEED_BYTES, salt, info).derive(secret)


SCHEME = "lan"
KEY_BYTES = 32


def lan_hint(lan: bytes, source: str, port: int) -> str:
    """Make the hint of a node that announced this key and port from this IP address: ``lan://KEY@host:port``.

    It is for this device alone and is not passed on: elsewhere it does not work, and would reveal where a
    device was.
    """
    host = f"[{source}]" if ":" in source else source
    return f"{SCHEME}://{key_text(lan)}@{host}:{port}"


def is_lan_hint(hint: str) -> bool:
    """Return whether a hint is of this kind."""
    return hint.startswith(f"{SCHEME}://")


def key_text(lan: bytes) -> str:
    """Return a key as text for a hint."""
    return base64.urlsafe_b64encode(lan).rstrip(b"=").decode()


def key_of(text: str) -> bytes:
    """Return the key in a hint; raises `ValueError` if there is none."""
    try:
        key = base64.b64decode(text + "=", altchars=b"-_", validate=True)
    except ValueError as error:
        raise ValueError("no key") from error
    if len(key) != KEY_BYTES or key_text(key) != text:
        raise ValueError("no key")
    return key
