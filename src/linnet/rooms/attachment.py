"""What an attachment event says: a file's name and size, and the digests of its pieces.

The pieces travel apart from the event, are asked for by digest, and can come from anyone: a wrong one is
noticed by whoever gets it.
"""

from __future__ import annotations

import hashlib
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from linnet.core.errors import InvalidEvent
from linnet.core.ids import Count
from linnet.core.limits import BODY_BYTES
from linnet.core.reasons import Reason
from linnet.rooms.messages import CHUNK_BYTES

DIGEST_BYTES = 32
NAME_CHARS = 255
MAX_PIECES = (BODY_BYTES - 2048) // DIGEST_BYTES
"""Pieces whose digests fit the body of one event."""

MAX_BYTES = MAX_PIECES * CHUNK_BYTES
"""Bytes of the largest file: about a gigabyte."""

_decode_error = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Attachment(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A file, as the room speaks of it."""

    name: Annotated[str, Meta(min_length=1, max_length=NAME_CHARS)]
    """What its sender calls it; see `file_name` before it becomes one."""
    size: Count
    media: Annotated[str, Meta(max_length=100)]
    """Its media type, as its sender says; empty if that is not known."""
    digests: Annotated[bytes, Meta(max_length=MAX_PIECES * DIGEST_BYTES)]
    """SHA-256 of each piece, one behind the other; all pieces but the last have `CHUNK_BYTES`."""

    @property
    def pieces(self) -> tuple[bytes, ...]:
        """The digests, one by one."""
        return tuple(self.digests[at : at + DIGEST_BYTES] for at in range(0, len(self.digests), DIGEST_BYTES))

    @property
    def file_name(self) -> str:
        """A name that stays in its directory, is not hidden, and that a terminal can show."""
        last = self.name.replace("\\", "/").rpartition("/")[2]
        plain = "".join(letter if letter.isprintable() else "_" for letter in last).strip().lstrip(".")
        # File systems count bytes.
        return plain.encode()[:200].decode(errors="ignore") or "attachment"

    def size_of(self, number: int) -> int:
        """Bytes of one piece."""
        return min(CHUNK_BYTES, self.size - number * CHUNK_BYTES)


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Attachment).decode


def attachment_body(attachment: Attachment) -> bytes:
    """The body of the event."""
    return _encode(attachment)


def attachment_of(body: bytes) -> Attachment:
    """What the body of an attachment event says; `InvalidEvent` if that is nothing that could be."""
    try:
        found = _decode(body)
    except _decode_error as error:
        raise InvalidEvent(Reason.MALFORMED, f"the body of an attachment: {error}") from error
    if len(found.digests) != -(-found.size // CHUNK_BYTES) * DIGEST_BYTES:
        raise InvalidEvent(Reason.MALFORMED, f"{len(found.digests)} bytes of digests for {found.size} bytes")
    return found


def piece_digest(data: bytes) -> bytes:
    """By what a piece is asked for."""
    return hashlib.sha256(data).digest()
