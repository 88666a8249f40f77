"""Frames: a four-byte big-endian length and that many bytes.

`FrameReader` is fed whatever arrived and gives back whole frames. It never holds more than one
frame of the allowed size and what one feed brought.
"""

from __future__ import annotations

import struct

from linnet.core.errors import MalformedMessage
from linnet.core.limits import FRAME_BYTES
from linnet.core.reasons import Reason

_LENGTH = struct.Struct("!I")
HEADER_BYTES = _LENGTH.size


def frame(payload: bytes, limit: int = FRAME_BYTES) -> bytes:
    """The payload behind its length. `ValueError` if it is longer than the other side reads."""
    if len(payload) > limit:
        raise ValueError(f"a frame of {len(payload)} bytes, at most {limit} are allowed")
    return _LENGTH.pack(len(payload)) + payload


class FrameReader:
    """Cuts a stream of bytes into frames.

    After a `MalformedMessage` there is no telling where the next frame begins: the link has to
    close, and the reader raises the same again.
    """

    def __init__(self, limit: int = FRAME_BYTES) -> None:
        self._limit = limit
        self._rest = bytearray()
        self._wanted = HEADER_BYTES

    @property
    def pending(self) -> int:
        """Bytes held that do not make a frame yet."""
        return len(self._rest)

    def feed(self, data: bytes) -> list[bytes]:
        """The frames that these bytes complete; `MalformedMessage` if one is announced too long."""
        if self._rest:
            # Appended, not joined: a frame that drips in byte by byte must not be copied each time.
            self._rest += data
            if len(self._rest) < self._wanted:
                return []
            data = bytes(self._rest)
            self._rest.clear()
        frames: list[bytes] = []
        start, size = 0, len(data)
        unpack, limit = _LENGTH.unpack_from, self._limit
        self._wanted = HEADER_BYTES
        while size - start >= HEADER_BYTES:
            (length,) = unpack(data, start)
            if length > limit:
                self._rest += data[start : start + HEADER_BYTES]
                detail = f"a frame of {length} bytes, at most {limit} are read"
                raise MalformedMessage(detail, Reason.OVERSIZED_FRAME)
            end = start + HEADER_BYTES + length
            if end > size:
                self._wanted = HEADER_BYTES + length
                break
            frames.append(data[start + HEADER_BYTES : end])
            start = end
        self._rest += data[start:]
        return frames
