"""The one clock: Unix time at start plus monotonic time since. It never goes back."""

from __future__ import annotations

import time
from collections.abc import Callable

STEP_SECONDS = 1.0
"""How far the wall clock may stray between two looks before it has been set."""


class Clock:
    """Gives `now` to the machines of a process."""

    def __init__(
        self,
        wall: Callable[[], float] = time.time,  # noqa: TID251 - the one place that reads the wall clock
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._base = wall() - monotonic()
        self._last = 0.0
        self._seen_offset = 0.0

    def now(self) -> float:
        """Unix time in seconds as this process counts it."""
        now = self._base + self._monotonic()
        if now < self._last:
            return self._last
        self._last = now
        return now

    @property
    def offset(self) -> float:
        """Seconds by which the wall clock is ahead of ours; what `doctor` shows."""
        return self._wall() - self.now()

    def step(self) -> float | None:
        """By how many seconds the wall clock was set since the last call; None if it was not.

        Our own time goes on as before. A machine that slept looks the same, since monotonic time
        stands still meanwhile.
        """
        offset = self.offset
        moved = offset - self._seen_offset
        if abs(moved) <= STEP_SECONDS:
            return None
        self._seen_offset = offset
        return moved
