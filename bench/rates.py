"""How often something can be done in a second."""

from __future__ import annotations

import time
from collections.abc import Callable


def per_second(action: Callable[[], object], seconds: float, batch: int = 16) -> float:
    """Calls a second, measured over about so many seconds."""
    rounds, started = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < seconds:
        for _ in range(batch):
            action()
        rounds += batch
    return rounds / elapsed
