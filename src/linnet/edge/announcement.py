"""The datagram by which a node shows itself on a local network. It names no topic and no device.

::

    magic 4 | version 1 | lan key 32 | port 2 | nonce 8 | signature 64

All fields have fixed widths; numbers are big-endian. The signature is the lan key's, over a tag and
all that stands before it. The nonce stays for as long as the rest does, so that what is announced
again is the same bytes, and its signature is checked once.
"""

from __future__ import annotations

import struct

from msgspec import Struct

from linnet.core.errors import MalformedMessage, RemoteError
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey, verify

MOST_BYTES = 256
"""Bytes of a datagram that are looked at; a later version may be longer than this one."""
NONCE_BYTES = 8
VERSION = 1

_MAGIC = b"lnLA"
_TAG = b"linnet/lan/announcement/1"
_LAYOUT = struct.Struct(f">4sB32sH{NONCE_BYTES}s64s")
_SIGNED = _LAYOUT.size - 64
ANNOUNCEMENT_BYTES = _LAYOUT.size


class Announcement(Struct, frozen=True, gc=False):
    """What a datagram says; its signature is checked apart."""

    lan: bytes
    """The sender's key on this network."""
    port: int
    """The TCP port at which it takes links, at the address that the datagram came from."""
    nonce: bytes


def announce(key: SigningKey, port: int, nonce: bytes) -> bytes:
    """The datagram of the holder of this key."""
    body = _LAYOUT.pack(_MAGIC, VERSION, key.public, port, nonce, b"")[:_SIGNED]
    return body + key.sign(_TAG + body)


def read_announcement(datagram: bytes) -> Announcement:
    """What foreign bytes say; `RemoteError` if they are no announcement of a version that we know."""
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
    """Raise `RemoteError` unless this key signed it. The datagram must have been read."""
    verify(lan, _TAG + datagram[:_SIGNED], datagram[_SIGNED:])
