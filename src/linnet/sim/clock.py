"""The virtual clock: what is to happen, in the order of time."""

from __future__ import annotations

from heapq import heappush
from itertools import count
from typing import Any

START = 1_600_000_000.0
"""Unix time at which simulations begin: machines see a clock like the real one, never a zero."""


class Clock:
    """A heap of things to come; equal times keep the order in which they were put in.

    An entry is ``(time, number, what, argument)``, plain tuples for speed. The numbers differ, so
    nothing behind them is ever compared.
    """

    __slots__ = ("heap", "next_number", "now", "start", "waiting")

    def __init__(self, start: float = START) -> None:
        self.start = start
        self.now = start
        self.heap: list[tuple[float, int, Any, Any]] = []
        self.next_number = count().__next__
        self.waiting = 0
        """Entries that are timers: if there is nothing else, nothing is under way."""

    def push(self, time: float, what: Any, argument: Any) -> None:  # noqa: ANN401 - see Clock
        """Let something happen at this time."""
        heappush(self.heap, (time, self.next_number(), what, argument))
