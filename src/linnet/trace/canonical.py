"""The one form of a row in which traces are compared.

Times are whole microseconds since 1970: a float of that size has no finer digits that mean anything,
and integers are equal or not. The float of a `Row` is this number divided by a million, in every
writer, so that tables from different writers, processes and machines are equal bit for bit. A `ColumnTrace`
keeps rows packed, in the form that stands at the end.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from typing import TypeVar

import msgspec

from linnet.trace.records import Row

MILLION = 1_000_000
_encode = msgspec.msgpack.Encoder().encode


def microseconds(now: float) -> int:
    """Return a time in whole microseconds."""
    return round(now * MILLION)


def seconds(microseconds: int) -> float:
    """Return the float that stands for this time in rows and tables."""
    return microseconds / MILLION


def trace_sha256(rows: Iterable[Row]) -> str:
    """Hash rows that are in (time, node, counter) order.

    Each row is hashed as the msgpack array of its columns, with the time in microseconds.
    """
    digest = hashlib.sha256()
    for row in rows:
        digest.update(_encode((microseconds(row.time), *row[1:])))
    return digest.hexdigest()


V = TypeVar("V", bytes, str)

ROW = struct.Struct("<qqqIIIIIIiiHH")
FIELDS = (
    "time",
    "seq",
    "bytes",
    "node",
    "topic",
    "event",
    "device",
    "peer",
    "note",
    "events",
    "hops",
    "kind",
    "reason",
)
"""The fields of a packed row, in this order."""

ABSENT = -1
"""Stands for an absent number; no number in a trace is negative."""


class Numbers(dict[V | None, int]):
    """Gives each new value the next number; None has 0. Its keys in order are the values."""

    def __init__(self) -> None:
        super().__init__({None: 0})

    def __missing__(self, value: V) -> int:
        number = self[value] = len(self)
        return number
