"""The virtual clock: a queue of entries in the order of time."""

from __future__ import annotations

from heapq import heappush
from itertools import count
from typing import Any, Protocol

from linnet.core.timers import Timer

START = 1_600_000_000.0
"""Unix time at which simulations begin: machines see a realistic clock, never a zero."""


class Ticking(Protocol):
    """The part of a node that the clock uses for timers."""

    ticks: dict[Timer, int]
    """Timers that are set, with their number on the clock."""


class Clock:
    """A heap of entries; equal times keep the order in which they were added.

    An entry is ``(time, number, what, argument)``, plain tuples for speed. The numbers differ, so the fields
    after them are never compared.

    Timers of a later second wait outside the heap until that second begins. Most have been set anew or
    cancelled by then, and never enter: a heap without them is small, and quick.
    """

    __slots__ = ("_later", "heap", "next_number", "now", "start", "waiting")

    def __init__(self, start: float = START) -> None:
        self.start = start
        self.now = start
        self.heap: list[tuple[float, int, Any, Any]] = []
        self.next_number = count().__next__
        self.waiting = 0
        """Entries of the heap that are timers: if there are no others, no message is under way."""
        self._later: dict[int, list[tuple[float, int, Any, Any]]] = {}

    def push(self, time: float, what: Any, argument: Any) -> None:  # noqa: ANN401 - see Clock
        """Schedule a call or a message for this time."""
        heappush(self.heap, (time, self.next_number(), what, argument))

    def set_timer(self, time: float, host: Ticking, timer: Timer) -> None:
        """Schedule a timer of a node for this time, unless it is set anew or cancelled before."""
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
        """Begin a second: move its timers that are still valid into the heap."""
        heap = self.heap
        before = len(heap)
        for entry in self._later.pop(second):
            _, number, host, timer = entry
            if host.ticks.get(timer) == number:
                heappush(heap, entry)
        self.waiting += len(heap) - before - 1
