"""Events of a sealed stream that a subscription was told of as unreadable, and that wait for a key."""

from __future__ import annotations

from collections import deque

from linnet.core.limits import MIB
from linnet.core.reasons import Reason
from linnet.event.event import Event

MAX_EVENTS = 4_096
MAX_BYTES = 16 * MIB
"""Of more, the oldest stay told as unreadable: they can be had again as history."""
MAY_PASS = frozenset({Reason.KEY_MISSING, Reason.NOT_A_MEMBER})
"""Why an event cannot be read now and perhaps can be later."""


class Locked:
    """What waits for one subscription, oldest first, within a bound."""

    __slots__ = ("_bytes", "_events")

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._events)

    def add(self, event: Event, reason: Reason) -> None:
        """Let an event wait, if there is hope for it."""
        if reason not in MAY_PASS:
            return
        self._events.append(event)
        self._bytes += len(event.body)
        while len(self._events) > MAX_EVENTS or self._bytes > MAX_BYTES:
            self._bytes -= len(self._events.popleft().body)

    def take(self) -> list[Event]:
        """All that waits; nothing does any more."""
        events, self._events = list(self._events), deque()
        self._bytes = 0
        return events
