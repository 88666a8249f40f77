"""Pieces of a file that only those can read who have its key: relays carry and check them without it.

Each file has a key of its own, and each of its pieces a number, in the order in which they are made. The
number is nonce and associated data, so that no piece can stand for another. The last piece of a file is
padded, so that the sizes of all tell no more than a class of the file's size.
"""

from __future__ import annotations

from linnet.core.errors import RemoteError
from linnet.core.limits import KIB
from linnet.core.reasons import Reason
from linnet.groups.primitives import open_sealed, seal

KEY_BYTES = 32
"""Bytes of the key of a file."""
TAG_BYTES = 16
"""Bytes that sealing adds to a piece."""
CLASS_BYTES = 4 * KIB
"""The last piece of a file has a multiple of so many bytes, unless that is more than a piece may have."""

_LABEL = b"linnet/piece/1"
_NONCE_BYTES = 12


def content_bytes(chunk_bytes: int, sealed: bool) -> int:
    """Bytes of a file, or of a list, that one piece holds."""
    return chunk_bytes - TAG_BYTES if sealed else chunk_bytes


def padded_bytes(content: int, chunk_bytes: int) -> int:
    """Bytes to seal for so many of a file; a full piece has no room for more, and needs none."""
    classes = -(-(content + TAG_BYTES) // CLASS_BYTES)
    return min(chunk_bytes, classes * CLASS_BYTES) - TAG_BYTES


def seal_piece(key: bytes, number: int, content: bytes) -> bytes:
    """A piece as it is kept and carried."""
    nonce = number.to_bytes(_NONCE_BYTES, "big")
    return seal(key, nonce, content, _LABEL + nonce)


def open_piece(key: bytes, number: int, sealed: bytes) -> bytes:
    """What a piece holds; `RemoteError` (``undecryptable``) if it is not this one of this file."""
    nonce = number.to_bytes(_NONCE_BYTES, "big")
    return open_sealed(key, nonce, sealed, _LABEL + nonce)


def unpadded(content: bytes, size: int, chunk_bytes: int) -> bytes:
    """The bytes of the file in a piece that is to hold so many; `RemoteError` if it is not padded so."""
    if len(content) != padded_bytes(size, chunk_bytes) or any(content[size:]):
        raise RemoteError(Reason.MALFORMED, f"a sealed piece of {len(content)} bytes for {size}")
    return content[:size]
