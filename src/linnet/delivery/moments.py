"""When the events of one chain were said, as far as this node can know it.

Authors write their own time into events, and their clocks may be hours away from ours. So a node goes by what
it saw itself: what comes live was said just now, and who sends something again says how long ago it
was said. Only lengths of time are passed on, never times, since each node measures those by one clock.
"""

from __future__ import annotations

from bisect import bisect_right

MOST_MOMENTS = 32
"""Moments that are remembered of a chain; past this, older ones are put together."""


class Moments:
    """Parts of a chain: the first number of each, and when the latest of the part was said."""

    __slots__ = ("_at", "_firsts")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._at: list[float] = []

    def note(self, first: int, at: float) -> None:
        """The events from this number on, up to the next that is noted, were said at this time.

        A chain is said in its order: what came late was said no later than what follows it.
        """
        firsts, times = self._firsts, self._at
        index = len(firsts)
        if index and first <= firsts[-1]:
            index = bisect_right(firsts, first)
            if index and firsts[index - 1] == first:
                return
            if index < len(times):
                at = min(at, times[index])
        firsts.insert(index, first)
        times.insert(index, at)
        while index and times[index - 1] > at:
            index -= 1
            times[index] = at
        if len(firsts) > MOST_MOMENTS:
            self._put_together()

    def since(self, moment: float) -> int | None:
        """The first number that may have been said at this time or later; None if there is none."""
        return next((first for first, at in zip(self._firsts, self._at, strict=True) if at >= moment), None)

    def at(self, number: int) -> float | None:
        """When this event was said, at the latest; None if that is not known."""
        index = bisect_right(self._firsts, number) - 1
        return None if index < 0 else self._at[index]

    def _put_together(self) -> None:
        """Halve the older half. A part counts as said when its latest event was: in doubt it is due."""
        older = MOST_MOMENTS // 2
        firsts, times = self._firsts[:older], self._at[:older]
        self._firsts[:older] = firsts[::2]
        self._at[:older] = [max(pair) for pair in zip(times[::2], times[1::2], strict=True)]
