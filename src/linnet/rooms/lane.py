"""Control events that wait for a control head before they can be judged."""

from __future__ import annotations

from linnet.core.ids import EventId
from linnet.delivery.barriers import Barriers
from linnet.rooms.arrival import Arrival

_SLACK = 64
"""Events that may be here and wait no more, before the lane is cleared of them."""


class Lane:
    """Those of one room, by the head that each waits for.

    All of them wait in the room's barriers too, which bound them and ask for what is missing. Whatever these
    let go, because there was no room to wait in, is let go here as well.
    """

    def __init__(self, order: Barriers[Arrival]) -> None:
        self._order = order
        self._by_head: dict[EventId, dict[EventId, Arrival]] = {}
        self._size = 0

    def __len__(self) -> int:
        """How many are here, some of which may wait no more."""
        return self._size

    def __contains__(self, head: object) -> bool:
        """Whether something waits for this head."""
        return head in self._by_head

    def wait(self, arrival: Arrival, head: EventId) -> bool:
        """Let an event wait for a head; False if it does not wait in the barriers."""
        if not self._order.waits(arrival.event.id):
            return False
        waiting = self._by_head.setdefault(head, {})
        self._size += arrival.event.id not in waiting
        waiting[arrival.event.id] = arrival
        if self._size > len(self._order) + _SLACK:
            self._clear()
        return True

    def free(self, head: EventId) -> list[Arrival]:
        """A head is known, or refused: who waited for it, and waits still."""
        freed = self._by_head.pop(head, {})
        self._size -= len(freed)
        return [each for id, each in freed.items() if self._order.waits(id)]

    def _clear(self) -> None:
        waits = self._order.waits
        for head, waiting in list(self._by_head.items()):
            left = {id: each for id, each in waiting.items() if waits(id)}
            self._size -= len(waiting) - len(left)
            if left:
                self._by_head[head] = left
            else:
                del self._by_head[head]
