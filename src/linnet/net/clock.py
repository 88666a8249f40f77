"""The one clock, Unix time at start plus monotonic time since, which never goes back; and its timers.

Timers of machines are stored by their value.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from linnet.core.timers import Timer


class Timers:
    """The timers of one driver. Two equal ticks are the same timer."""

    def __init__(self, fire: Callable[[Timer], None]) -> None:
        self._fire = fire
        self._loop = asyncio.get_running_loop()
        self._handles: dict[Timer, asyncio.TimerHandle] = {}

    def set(self, delay: float, tick: Timer) -> None:
        """Fire a tick after so many seconds, instead of when it was due before."""
        self.cancel(tick)
        self._handles[tick] = self._loop.call_later(delay, self._due, tick)

    def cancel(self, tick: Timer) -> None:
        """Cancel a tick."""
        handle = self._handles.pop(tick, None)
        if handle is not None:
            handle.cancel()

    def clear(self) -> None:
        """Cancel all ticks."""
        for handle in self._handles.values():
            handle.cancel()
        self._handles.clear()

    def _due(self, tick: Timer) -> None:
        del self._handles[tick]
        self._fire(tick)


STEP_SECONDS = 1.0
"""Seconds that the wall clock may drift between two calls without counting as set."""


class Clock:
    """The source of `now` for the machines of a process."""

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
        """Return Unix time in seconds, as this process counts it."""
        now = self._base + self._monotonic()
        if now < self._last:
            return self._last
        self._last = now
        return now

    @property
    def offset(self) -> float:
        """Seconds by which the wall clock is ahead of ours; shown by `doctor`."""
        return self._wall() - self.now()

    def step(self) -> float | None:
        """Return by how many seconds the wall clock was set since the last call; None if it was not.

        Our own time goes on as before. After a machine has slept it looks the same, since monotonic time
        stands still meanwhile.
        """
        offset = self.offset
        moved = offset - self._seen_offset
        if abs(moved) <= STEP_SECONDS:
            return None
        self._seen_offset = offset
        return moved
