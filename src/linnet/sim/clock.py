"""The virtual clock: what is to happen, in the order of time."""

from __future__ import annotations

from heapq import heappush
from itertools import count
from typing import Any, Protocol

from linnet.core.timers import Timer

START = 1_600_000_000.0
"""Unix time at which simulations begin: machines see a clock like the real one, never a zero."""


class Ticking(Protocol):
    """A node, as far as its timers go."""

    ticks: dict[Timer, int]
    """Timers that are set, with their number on the clock."""


class Clock:
    """A heap of things to come; equal times keep the order in which they were put in.

    An entry is ``(time, number, what, argument)``, plain tuples for speed. The numbers differ, so
    nothing behind them is ever compared.

    Timers of a later second wait outside the heap until that second begins. Most have been set anew or
    cancelled by then, and never come in: a heap of what is under way alone is small, and quick.
    """

    __slots__ = ("_later", "heap", "next_number", "now", "start", "waiting")

    def __init__(self, start: float = START) -> None:
        self.start = start
        self.now = start
        self.heap: list[tuple[float, int, Any, Any]] = []
        self.next_number = count().__next__
        self.waiting = 0
        """Entries of the heap that are timers: if there is nothing else, nothing is under way."""
        self._later: dict[int, list[tuple[float, int, Any, Any]]] = {}

    def push(self, time: float, what: Any, argument: Any) -> None:  # noqa: ANN401 - see Clock
        """Let something happen at this time."""
        heappush(self.heap, (time, self.next_number(), what, argument))

    def set_timer(self, time: float, host: Ticking, timer: Timer) -> None:
        """Let a timer of a node run out at this time, unless it is set anew or cancelled before."""
        number = self.next_number()
        host.ticks[timer] = number
        second = int(time)
        if second <= self.now:
            self.waiting += 1
            heappush(self.heap, (time, number, host, timer))
            return
        later = self._later.get(second)
        if later is None:
            later = self._later[second] = []
            self.waiting += 1
            # Before everything else of its time: no other number is below zero.
            heappush(self.heap, (float(second), -1, self._begin, (second,)))
        later.append((time, number, host, timer))

    def _begin(self, second: int) -> None:
        """A second begins: its timers come in, those that still matter."""
        heap = self.heap
        before = len(heap)
        for entry in self._later.pop(second):
            _, number, host, timer = entry
            if host.ticks.get(timer) == number:
                heappush(heap, entry)
        self.waiting += len(heap) - before - 1
