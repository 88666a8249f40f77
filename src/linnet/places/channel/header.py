"""The header before a message's text: how far the modifiers go, and where it stands in the state.

Toth 2013, section 4.1, names its fields and leaves the layout open. Here::

    version u8 | flags u8 | modifier length u32 | [state delta u64] | [state hash, 32 bytes]

The length is that of everything in front of the body. With it the method is called as soon as the
modifiers are there, however long the body is.
"""

from __future__ import annotations

import struct

from msgspec import Struct

from linnet.core.errors import RemoteError
from linnet.core.limits import LARGEST_COUNT
from linnet.core.reasons import Reason
from linnet.places.config import PlacesConfig

VERSION = 1
HASH_BYTES = 32
LARGEST_HEADER = 6 + 8 + HASH_BYTES

_HAS_DELTA = 1
_HAS_HASH = 2
_fixed = struct.Struct(">BBI")
_delta = struct.Struct(">Q")


class Header(Struct, frozen=True, gc=False):
    """What the text itself does not say."""

    modifier_bytes: int
    """Bytes of the text up to the body."""
    delta: int | None = None
    """How many messages ago the state was changed last; 0: it begins anew. None: state is not touched."""
    hash: bytes | None = None
    """SHA-256 of the state behind this message's own modifiers. Only with a delta: otherwise nobody
    could know whether a message that they miss changes what is hashed."""


def encode_header(header: Header) -> bytes:
    """Its bytes."""
    flags = _HAS_DELTA * (header.delta is not None) | _HAS_HASH * (header.hash is not None)
    data = _fixed.pack(VERSION, flags, header.modifier_bytes)
    if header.delta is not None:
        data += _delta.pack(header.delta)
    return data + (header.hash or b"")


def read_header(data: bytes, limits: PlacesConfig | None = None) -> tuple[Header, int] | None:
    """The header that a message begins with and its length; None: more bytes are needed.

    `LARGEST_HEADER` bytes are always enough. `RemoteError` if this is no header.
    """
    if len(data) < _fixed.size:
        return None
    version, flags, length = _fixed.unpack_from(data)
    if version != VERSION:
        raise RemoteError(Reason.UNSUPPORTED, f"offset 0: version {version} of the header")
    if flags & ~(_HAS_DELTA | _HAS_HASH) or flags == _HAS_HASH:
        raise RemoteError(Reason.MALFORMED, f"offset 1: flags {flags}")
    if length > (limits or PlacesConfig()).modifier_bytes:
        raise RemoteError(Reason.TOO_LARGE, f"offset 2: {length} bytes of modifiers")
    if length == 0:
        raise RemoteError(Reason.MALFORMED, "offset 2: no method")
    end = _fixed.size + _delta.size * bool(flags & _HAS_DELTA) + HASH_BYTES * bool(flags & _HAS_HASH)
    if len(data) < end:
        return None
    delta = _delta.unpack_from(data, _fixed.size)[0] if flags & _HAS_DELTA else None
    if delta is not None and delta > LARGEST_COUNT:
        raise RemoteError(Reason.MALFORMED, f"offset {_fixed.size}: delta {delta}")
    return Header(length, delta, bytes(data[end - HASH_BYTES : end]) if flags & _HAS_HASH else None), end
