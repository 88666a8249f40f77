"""Everything that is reachable from an event, as a bit mask.

Resolution compares auth chains by the thousand. As Python integers, with one bit per event, a union or a
difference of two of them costs some nanoseconds for each sixty-four events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from linnet.core.ids import EventId

Parents = Callable[[EventId], tuple[EventId, ...]]


class Chains:
    """Masks of all that is reachable along one sort of edge, the event itself included.

    A bit belongs to an event by the order in which it was first asked for, parents before children. That
    order differs between nodes: it must never show in a result.
    """

    def __init__(self, parents_of: Parents) -> None:
        self._parents_of = parents_of
        self._positions: dict[EventId, int] = {}
        self._order: list[EventId] = []
        self._masks: list[int] = []

    def mask(self, event: EventId) -> int:
        """All that is reachable from an event, and itself."""
        position = self._positions.get(event)
        return self._masks[self._place(event) if position is None else position]

    def bit(self, event: EventId) -> int:
        """The event alone."""
        position = self._positions.get(event)
        return 1 << (self._place(event) if position is None else position)

    def union(self, events: Iterable[EventId]) -> int:
        """All that is reachable from any of these."""
        mask = 0
        for event in events:
            mask |= self.mask(event)
        return mask

    def bits(self, events: Iterable[EventId]) -> int:
        """These alone."""
        mask = 0
        for event in events:
            mask |= self.bit(event)
        return mask

    @property
    def everything(self) -> int:
        """All events that have a bit."""
        return (1 << len(self._order)) - 1

    def reaches(self, event: EventId, other: EventId) -> bool:
        """Whether the other is reachable from the event; each reaches itself."""
        mask = self.mask(event)
        position = self._positions.get(other)
        return position is not None and bool(mask >> position & 1)

    def events(self, mask: int) -> list[EventId]:
        """The events of a mask, parents before children."""
        order = self._order
        return [order[position] for position in _positions(mask)]

    def through(self, ends: int) -> int:
        """All that lies on a path from one of these to another, these included."""
        if not ends:
            return 0
        lowest = (ends & -ends).bit_length() - 1  # nothing before it reaches any of them
        below = 0
        for position in _positions(ends):
            below |= self._masks[position]
        found = 0
        for offset in _positions(below >> lowest):
            if self._masks[lowest + offset] & ends:
                found |= 1 << lowest + offset
        return found

    def __len__(self) -> int:
        return len(self._order)

    def _place(self, event: EventId) -> int:
        """Give bits to an event and all that it reaches, without recursion: chains are long."""
        stack = [event]
        while stack:
            top = stack[-1]
            if top in self._positions:
                stack.pop()
                continue
            parents = self._parents_of(top)
            absent = [parent for parent in parents if parent not in self._positions]
            if absent:
                stack += absent
                continue
            stack.pop()
            position = len(self._order)
            mask = 1 << position
            for parent in parents:
                mask |= self._masks[self._positions[parent]]
            self._positions[top] = position
            self._order.append(top)
            self._masks.append(mask)
        return self._positions[event]


def _positions(mask: int) -> Iterator[int]:
    """Positions of the bits that are set, lowest first."""
    digits = bin(mask)[:1:-1]
    position = digits.find("1")
    while position >= 0:
        yield position
        position = digits.find("1", position + 1)
