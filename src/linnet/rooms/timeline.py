"""The one order in which the history of a room is shown, alike at everyone who has the same events.

An event comes after all that it follows; else the author's time decides, and then the id. A clock that is
behind puts no event before what it answers: its time counts as later than theirs.
"""

from __future__ import annotations

from typing import TypeAlias

from linnet.core.ids import EventId
from linnet.event.event import Event

Key: TypeAlias = tuple[int, EventId]
"""What events are sorted by."""


class Timeline:
    """Where each event of a room belongs: a function of the events, not of the order in which they came."""

    def __init__(self) -> None:
        self._said: dict[EventId, tuple[int, tuple[EventId, ...]]] = {}
        """The author's time of each event, and what it follows."""
        self._times: dict[EventId, int] = {}
        self._absent: dict[EventId, None] = {}
        """What others follow and is not here: it may come back as history."""

    def add(self, event: Event, causes: tuple[EventId, ...]) -> None:
        """An event has its place."""
        if event.id in self._said:
            return
        self._said[event.id] = (event.time, causes)
        self._absent |= {cause: None for cause in causes if cause not in self._said}
        if self._absent.pop(event.id, self) is None:
            self._times.clear()  # What follows it was placed without it.

    def key(self, event: EventId) -> Key:
        """Where it belongs; at the beginning, if it is not known."""
        if event not in self._said:
            return -1, event
        if event not in self._times:
            self._place(event)
        return self._times[event], event

    def _place(self, event: EventId) -> None:
        """Work out the time of an event and of all before it, without recursion: chains are long."""
        stack = [event]
        while stack:
            time, causes = self._said[stack[-1]]
            here = [cause for cause in causes if cause in self._said]
            unknown = [cause for cause in here if cause not in self._times]
            if unknown:
                stack += unknown
                continue
            self._times[stack.pop()] = max(time, 1 + max(map(self._times.__getitem__, here), default=-1))
