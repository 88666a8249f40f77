"""When the events of one chain were said, as far as this node can know it.

Authors write their own time into events, and their clocks may be hours away from ours. So a node goes by what
it saw itself: what comes live was said just now, and who sends something again says how long ago it
was said. Only lengths of time are passed on, never times, since each node measures those by one clock.

A clock may be set between the two ends of a length. Who sends something again may then call it hours old
though we know better: it follows what we heard ourselves, or most others say that it was said in our time.
Such a word is not believed. Most, for others may be wrong too: who slept for a while takes for new all that
came meanwhile. In doubt an event is new: who is handed too much can see that, who lacks something cannot.
"""

from __future__ import annotations

from bisect import bisect_right

from linnet.core.ids import PeerId

MOST_MOMENTS = 32
"""Moments that are remembered of a chain; past this, older ones are put together."""
MOST_ANSWERS = 8
"""Peers whose latest answer is remembered: about as many as a node has neighbours."""
SLACK = 10.0
"""Seconds by which words on when something was said may differ: what carries them takes its time."""


class Moments:
    """Parts of a chain: the first number of each, and when the latest of the part was said."""

    __slots__ = ("_answers", "_at", "_firsts", "_floor", "_heard")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._at: list[float] = []
        self._heard: list[bool] = []
        """Whether we heard a part ourselves, as it was said."""
        self._floor: tuple[int, float] | None = None
        """A number from which on nothing was said before a time."""
        self._answers: dict[PeerId, tuple[int, int, int, float]] = {}
        """By peer: the first number that it knows, the first since a moment, the last, and that moment."""

    def note(self, first: int, at: float, *, heard: bool = False, now: float | None = None) -> None:
        """The events from this number on, up to the next that is noted, were said at this time.

        A chain is said in its order: what came late was said no later than what follows it. Unless it was
        heard as it was said, the time is another's word, and cannot be true if it lies before what is known.
        Then nobody knows, and it may have been said just now.
        """
        firsts, times = self._firsts, self._at
        index = len(firsts)
        if index and first <= firsts[-1]:
            index = bisect_right(firsts, first)
            if index and firsts[index - 1] == first:
                return
        if not heard:
            at = self._believed(first, index, at, now)
        if index < len(times):
            at = min(at, times[index])
        firsts.insert(index, first)
        times.insert(index, at)
        self._heard.insert(index, heard)
        while index and times[index - 1] > at:
            index -= 1
            times[index] = at
        if len(firsts) > MOST_MOMENTS:
            self._put_together()

    def not_before(self, first: int, at: float) -> None:
        """What follows from this number on was said at this time or later."""
        self._floor = first, at

    def answered(self, peer: PeerId, known: int, first: int, last: int, moment: float) -> None:
        """A peer that knows a range of the chain says which of it was the first to be said since a moment."""
        self._answers.pop(peer, None)
        if len(self._answers) >= MOST_ANSWERS:
            del self._answers[next(iter(self._answers))]
        self._answers[peer] = known, first, last, moment

    def _promised(self, number: int) -> float | None:
        """The moment since which an event was said, if no more peers say that it was said before."""
        words = [each for each in self._answers.values() if each[0] <= number <= each[2]]
        moments = [moment for _, first, _, moment in words if first <= number]
        return max(moments) if moments and 2 * len(moments) >= len(words) else None

    def _believed(self, first: int, index: int, at: float, now: float | None) -> float:
        """A time that somebody tells, or a later one if it cannot be."""
        promised, floor = self._promised(first), self._floor
        bound = at if promised is None else promised
        if floor is not None and floor[0] <= first:
            bound = max(bound, floor[1])
        before = zip(reversed(self._at[:index]), reversed(self._heard[:index]), strict=True)
        bound = max(bound, next((time for time, heard in before if heard), at))
        if at >= bound - SLACK:
            return max(at, bound)
        return bound if now is None else max(bound, now)

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
        heard = self._heard[:older]
        self._heard[:older] = [any(pair) for pair in zip(heard[::2], heard[1::2], strict=True)]
