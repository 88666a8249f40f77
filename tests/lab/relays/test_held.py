"""What relays hold."""

from __future__ import annotations

import numpy as np
import pytest

from linnet.lab.relays.chat_arrays import chat_arrays
from linnet.lab.relays.held import EVENT_OVERHEAD, Held, exact_sum, held


@pytest.mark.parametrize("retention", [None, 0, 5, 10, 1_000])
def test_events_are_held_until_the_retention_or_the_end(retention: int | None) -> None:
    times, chars = [0, 3, 3, 12, 20], [5, 0, 7, 1, 2]
    kept = [20 - time if retention is None else min(20 - time, retention) for time in times]
    size = [EVENT_OVERHEAD + count for count in chars]
    chat = chat_arrays(times, ["a", "b", "a", "b", "a"], chars)
    assert held(chat, retention) == Held(sum(kept), sum(a * b for a, b in zip(kept, size, strict=True)))


def test_sums_beyond_64_bits_are_exact() -> None:
    values = np.full(1_000, 2**62 - 1, dtype=np.int64)
    assert exact_sum(values) == 1_000 * (2**62 - 1)
    assert exact_sum(values[:0]) == 0
