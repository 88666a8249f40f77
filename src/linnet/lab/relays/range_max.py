"""The greatest of many stretches of one array, all asked at once."""

from __future__ import annotations

import numpy as np

from linnet.lab.relays.chat_arrays import I64

_LEVELS_OFF = -(2**62)


def range_max(values: I64, low: I64, high: I64) -> I64:
    """The greatest of ``values[low:high]`` for each pair; every stretch has at least one value.

    Two overlapping stretches of a power of two cover any stretch. Powers are taken one after the other,
    so that there is one table in memory, and none is made that nobody asks for.
    """
    found = np.full(len(low), _LEVELS_OFF, dtype=np.int64)
    if not len(low):
        return found
    levels = np.frexp((high - low).astype(np.float64))[1] - 1
    table, width = values, 1
    for level in range(int(levels.max()) + 1):
        asked = np.flatnonzero(levels == level)
        found[asked] = np.maximum(table[low[asked]], table[high[asked] - width])
        table = np.maximum(table[:-width], table[width:])
        width *= 2
    return found
