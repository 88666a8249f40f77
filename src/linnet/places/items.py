"""The items that a subscriber of a place is handed, and the bound on items and bytes in flight."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from msgspec import Struct

from linnet.core.ids import AuthorId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.items import Ended, Item
from linnet.machine.outbox import Outbox
from linnet.places.channel.packet import Modifier


class Said(Struct, frozen=True, gc=False):
    """The beginning of a message: its method and variables, after its changes of state were applied."""

    place: TopicId
    message: int
    nym: AuthorId | None
    """The guest that made this request, at the host; None: the host said it to all."""
    author: AuthorId
    """The person whose device signed it."""
    method: str
    modifiers: tuple[Modifier, ...]
    historic: bool


class Body(Struct, frozen=True, gc=False):
    """A piece of the body of a message."""

    place: TopicId
    message: int
    nym: AuthorId | None
    offset: int
    data: bytes
    last: bool


class Knocked(Struct, frozen=True, gc=False):
    """A stranger waits at the door: answer with `Admit` or `Reject`."""

    place: TopicId
    nym: AuthorId
    method: str
    modifiers: tuple[Modifier, ...]
    text: bytes


class Changed(Struct, frozen=True, gc=False):
    """An object of the place has another value now; None: the object is gone."""

    place: TopicId
    message: int
    name: str
    value: bytes | None


class Lost(Struct, frozen=True, gc=False):
    """Messages of a range that cannot be delivered, and the reason: closed to us, or kept by nobody."""

    place: TopicId
    first: int
    last: int
    reason: Reason


class TakenBack(Struct, frozen=True, gc=False):
    """Messages that were handed over and do not count: another term was opened before they were said.

    Their numbers are reused. Their authors repeat them, under new numbers and with `AGAIN`.
    """

    place: TopicId
    messages: tuple[int, ...]


AGAIN = "_said_before"
"""The variable of a repeated message: the event that began it when it was first said."""

PlaceItem: TypeAlias = Said | Body | Knocked | Changed | Lost | TakenBack


TAKEN = -1
"""Stands for a notice of taken-back messages in place of a message number. Below it: see `request_mark`."""


def request_mark(number: int) -> int:
    """Return the mark that stands for a stored request in place of a message number; and the reverse."""
    return TAKEN - number


class DeliveryWindow:
    """The items in flight to the application."""

    def __init__(self, subscription: int, most_items: int, most_bytes: int, out: Outbox) -> None:
        self._subscription = subscription
        self._out = out
        self._most_items = most_items
        self._most_bytes = most_bytes
        self._flight: deque[tuple[int, int]] = deque()
        """The bytes and the message number or mark of each item in flight; 0: none."""
        self._bytes = 0
        self._batch: list[Item | PlaceItem] = []
        self.ended = False

    @property
    def has_room(self) -> bool:
        """Whether another item may go. The last may be larger than the room left, so that any size passes."""
        return not self.ended and len(self._flight) < self._most_items and self._bytes < self._most_bytes

    @property
    def messages(self) -> Iterator[int]:
        """The messages that have items in flight."""
        return (message for _, message in self._flight if message > 0)

    def hand(self, items: Iterable[PlaceItem], message: int = 0) -> None:
        """Add items, to be sent with the next `flush`."""
        for item in items:
            size = len(item.data) if isinstance(item, Body) else 0
            self._flight.append((size, message))
            self._bytes += size
            self._batch.append(item)

    def take_handled(self, items: int) -> list[int]:
        """Release the oldest items, now handled; return those marks of them that stand for no message."""
        marks: list[int] = []
        for _ in range(min(items, len(self._flight))):
            size, message = self._flight.popleft()
            self._bytes -= size
            if message < 0:
                marks.append(message)
        return marks

    def forget(self, first: int) -> None:
        """Detach items in flight from messages from this one on: their numbers are reused."""
        self._flight = deque((size, 0 if message >= first else message) for size, message in self._flight)

    def end(self, reason: Reason | None) -> None:
        """End the items with a reason, once."""
        if not self.ended:
            self.ended = True
            self._batch.append(Ended(reason))

    def flush(self, promised: bool = True) -> None:
        """Deliver the items added since the last flush: after the commit, unless they promise nothing."""
        if self._batch:
            batch, self._batch = tuple(self._batch), []
            (self._out.committed if promised else self._out).deliver(self._subscription, batch)
