"""How a `ColumnTrace` packs a row, for those who unpack it."""

from __future__ import annotations

import struct
from typing import TypeVar

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
"""What a packed row holds, in this order."""

ABSENT = -1
"""Stands for a number that is not there; none of ours is negative."""


class Numbers(dict[V | None, int]):
    """Gives each new value the next number; None has 0. Its keys in order are the values."""

    def __init__(self) -> None:
        super().__init__({None: 0})

    def __missing__(self, value: V) -> int:
        number = self[value] = len(self)
        return number
