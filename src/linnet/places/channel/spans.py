"""Which bytes of a message are held while some are missing: sorted spans that neither touch nor overlap."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import msgspec
from msgspec import Struct

MOST_SPANS = 65_536
"""Spans of one message: with pieces of 60 KiB it would take holes in eight gigabytes."""


class Spans(Struct, array_like=True):
    """Begins and ends, and where the message ends if that is known. An end is the byte behind."""

    begins: list[int]
    ends: list[int]
    total: int | None = None

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing."""
        return self.total is not None and self.begins == [0] and self.ends == [self.total]

    def fits(self, offset: int, length: int, last: bool) -> bool:
        """Whether a piece can be part of the same message as those that are held."""
        end = offset + length
        if self.total is not None and (last or end > self.total or (not length and offset == self.total)):
            return False
        if last and self.ends and self.ends[-1] > end:
            return False
        at = bisect_right(self.begins, offset) - 1
        free_before = at < 0 or self.ends[at] <= offset
        free_behind = at + 1 >= len(self.begins) or end <= self.begins[at + 1]
        return free_before and free_behind

    def add(self, offset: int, length: int, last: bool) -> None:
        """Hold a piece that `fits`."""
        end = offset + length
        if last:
            self.total = end
        if not length and (offset or not last):
            return
        low = bisect_left(self.ends, offset)
        high = bisect_right(self.begins, end)
        if low < high:
            offset, end = min(offset, self.begins[low]), max(end, self.ends[high - 1])
        self.begins[low:high] = [offset]
        self.ends[low:high] = [end]

    def remove(self, offset: int, end: int) -> None:
        """Do not hold a piece any more. Without any piece nothing is known of the end either."""
        at = bisect_right(self.begins, offset) - 1
        if at >= 0 and end <= self.ends[at]:
            begin, behind = self.begins[at], self.ends[at]
            left = [(begin, offset), (end, behind)]
            self.begins[at : at + 1] = [first for first, last in left if first < last]
            self.ends[at : at + 1] = [last for first, last in left if first < last]
        if end == self.total or not self.begins:
            self.total = None


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Spans).decode


def encode_spans(spans: Spans) -> bytes:
    """The bytes of a cell."""
    return _encode(spans)


def decode_spans(raw: bytes) -> Spans:
    """Spans from a cell of our own."""
    return _decode(raw)
