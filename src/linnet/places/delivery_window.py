"""How much may be on its way to one who watches a place: so many items, and so many bytes of bodies."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from linnet.core.reasons import Reason
from linnet.delivery.items import Ended, Item
from linnet.machine.outbox import Outbox
from linnet.places.items import Body, PlaceItem

TAKEN = -1
"""In place of a message: the word that some were taken back. Below it: requests, see `request_mark`."""


def request_mark(number: int) -> int:
    """What stands in place of a message for a request that is kept under this number; and the other way."""
    return TAKEN - number


class DeliveryWindow:
    """Items in flight to the application."""

    def __init__(self, subscription: int, most_items: int, most_bytes: int, out: Outbox) -> None:
        self._subscription = subscription
        self._out = out
        self._most_items = most_items
        self._most_bytes = most_bytes
        self._flight: deque[tuple[int, int]] = deque()
        """Bytes and message of each; 0: of none."""
        self._bytes = 0
        self._batch: list[Item | PlaceItem] = []
        self.ended = False

    @property
    def has_room(self) -> bool:
        """Whether another one may go. The last may be larger than what is left, so that any size passes."""
        return not self.ended and len(self._flight) < self._most_items and self._bytes < self._most_bytes

    @property
    def messages(self) -> Iterator[int]:
        """Messages of which something is in flight."""
        return (message for _, message in self._flight if message > 0)

    def hand(self, items: Iterable[PlaceItem], message: int = 0) -> None:
        """Hand items over; they go with the next `flush`."""
        for item in items:
            size = len(item.data) if isinstance(item, Body) else 0
            self._flight.append((size, message))
            self._bytes += size
            self._batch.append(item)

    def take_handled(self, items: int) -> list[int]:
        """Let go of so many items, the oldest: the application is done with them. The marks among these that
        stand for no message."""
        marks: list[int] = []
        for _ in range(min(items, len(self._flight))):
            size, message = self._flight.popleft()
            self._bytes -= size
            if message < 0:
                marks.append(message)
        return marks

    def forget(self, first: int) -> None:
        """Items of messages from this one on are of none any more: their numbers are used again."""
        self._flight = deque((size, 0 if message >= first else message) for size, message in self._flight)

    def end(self, reason: Reason | None) -> None:
        """Nothing more comes; said once."""
        if not self.ended:
            self.ended = True
            self._batch.append(Ended(reason))

    def flush(self, promised: bool = True) -> None:
        """Deliver what was handed over since: after the commit, unless nothing is promised by it."""
        if self._batch:
            batch, self._batch = tuple(self._batch), []
            (self._out.committed if promised else self._out).deliver(self._subscription, batch)
