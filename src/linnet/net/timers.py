"""Timers of machines on the loop's clock, kept by their value."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from linnet.core.timers import Timer


class Timers:
    """The timers of one driver. Two equal ticks are the same timer."""

    def __init__(self, fire: Callable[[Timer], None]) -> None:
        self._fire = fire
        self._loop = asyncio.get_running_loop()
        self._handles: dict[Timer, asyncio.TimerHandle] = {}

    def set(self, delay: float, tick: Timer) -> None:
        """Fire this tick after so many seconds, instead of when it was due before."""
        self.cancel(tick)
        self._handles[tick] = self._loop.call_later(delay, self._due, tick)

    def cancel(self, tick: Timer) -> None:
        """Do not fire this tick."""
        handle = self._handles.pop(tick, None)
        if handle is not None:
            handle.cancel()

    def clear(self) -> None:
        """Fire nothing any more."""
        for handle in self._handles.values():
            handle.cancel()
        self._handles.clear()

    def _due(self, tick: Timer) -> None:
        del self._handles[tick]
        self._fire(tick)
