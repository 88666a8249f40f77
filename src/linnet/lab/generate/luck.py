"""Random bits that depend on the seed and a number alone, whatever runs where and in which order.

The raw output of Philox is the same in every version of numpy, which is not promised of the distributions
built on it.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Bits16: TypeAlias = NDArray[np.uint16]


class Luck:
    """The bits of one chat, or of the plan (number 0), in order."""

    def __init__(self, seed: int, number: int) -> None:
        self._source = np.random.Philox(np.random.SeedSequence((seed, number)))

    def words(self, count: int) -> NDArray[np.uint64]:
        """So many times 64 bits."""
        return np.asarray(self._source.random_raw(count), dtype=np.uint64)

    def halves(self, count: int) -> Bits16:
        """So many times 16 bits."""
        words = self.words((count + 3) // 4).astype("<u8", copy=False)
        return words.view("<u2")[:count]

    def order(self, count: int) -> NDArray[np.int64]:
        """The numbers below `count`, shuffled."""
        return np.argsort(self.words(count), kind="stable").astype(np.int64, copy=False)
