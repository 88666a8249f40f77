"""The mainline: the power events that led to one, and how far from it another turned off.

Every power event names at most one before it, so they form a tree. The place of an event on the
mainline of P is the distance from P to where the two lines meet; it is found by walking no further.
"""

from __future__ import annotations

from collections.abc import Callable

from linnet.core.ids import EventId


class Mainline:
    """The tree of power events."""

    def __init__(self, power_before: Callable[[EventId], EventId | None]) -> None:
        self._power_before = power_before
        self._depths: dict[EventId, int] = {}

    def position(self, power: EventId | None, of: EventId | None) -> int | None:
        """How many steps before `of` the line of `power` leaves its mainline.

        None: they never met, or there is no mainline. Such events sort before all others.
        """
        if power is None or of is None:
            return None
        top = self._depth(of)
        one: EventId | None = power
        other: EventId | None = of
        while one is not None and other is not None and one != other:
            deeper, other_deeper = self._depth(one), self._depth(other)
            if deeper >= other_deeper:
                one = self._power_before(one)
            if other_deeper >= deeper:
                other = self._power_before(other)
        return None if one is None or other is None else top - self._depth(one)

    def _depth(self, power: EventId) -> int:
        line: list[EventId] = []
        one: EventId | None = power
        while one is not None and one not in self._depths:
            line.append(one)
            one = self._power_before(one)
        depth = 0 if one is None else self._depths[one]
        for event in reversed(line):
            depth += 1
            self._depths[event] = depth
        return depth
