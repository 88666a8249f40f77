"""The one form of a row in which traces are compared.

Times are whole microseconds since 1970: a float of that size has no finer digits that mean anything,
and integers are equal or not. The float of a `Row` is this number divided by a million, in every
writer, so that tables from different writers, processes and machines are equal bit for bit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from linnet.trace.records import Row

MILLION = 1_000_000
_encode = msgspec.msgpack.Encoder().encode


def microseconds(now: float) -> int:
    """A time as whole microseconds."""
    return round(now * MILLION)


def seconds(microseconds: int) -> float:
    """The float that stands for this time in rows and tables."""
    return microseconds / MILLION


def trace_sha256(rows: Iterable[Row]) -> str:
    """The hash of rows that come in (time, node, counter) order.

    Each row is hashed as the msgpack array of its columns, with the time in microseconds.
    """
    digest = hashlib.sha256()
    for row in rows:
        digest.update(_encode((microseconds(row.time), *row[1:])))
    return digest.hexdigest()
