"""A cursor over foreign bytes of fixed order and width; whatever does not fit is one error."""

from __future__ import annotations

import struct
from itertools import pairwise

from linnet.core.errors import MalformedMessage
from linnet.groups.two_party import direct_length

_U16, _U32 = struct.Struct(">H"), struct.Struct(">I")


class Reader:
    """Takes one field after the other; `MalformedMessage` where the bytes end early or go on."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        """The next bytes, so many."""
        end = self._at + size
        if end > len(self._data):
            raise MalformedMessage("a group operation ends early")
        part = self._data[self._at : end]
        self._at = end
        return part

    def u8(self) -> int:
        """One byte as a number."""
        return self.take(1)[0]

    def u16(self) -> int:
        """Two bytes as a number."""
        return int(_U16.unpack(self.take(2))[0])

    def u32(self) -> int:
        """Four bytes as a number."""
        return int(_U32.unpack(self.take(4))[0])

    def direct(self, payload: int = 32) -> bytes:
        """A direct message: its first byte tells its length."""
        return self.take(direct_length(self._data[self._at : self._at + 1], payload))

    def rest(self) -> bytes:
        """All that is left."""
        return self.take(len(self._data) - self._at)

    def end(self) -> None:
        """`MalformedMessage` if anything is left."""
        if self._at != len(self._data):
            raise MalformedMessage("a group operation goes on after its end")


def rising(items: tuple[bytes, ...], what: str) -> None:
    """`MalformedMessage` unless each is larger than the one before: sorted, and none twice."""
    for first, second in pairwise(items):
        if first >= second:
            raise MalformedMessage(f"{what} are not in order")
