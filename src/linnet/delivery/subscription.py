"""A subscription of the local application: what it was handed, what it has handled, what waits.

A live subscription is handed what comes. A durable one is a cursor over the log: it is handed
what the log holds past its cursor, so that a crash repeats what was not acknowledged and loses
nothing. Both stop at a window of items that the application has not handled yet; then a durable
one waits in the log, and a live one in a bounded buffer, past which it ends with a reason.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from struct import Struct
from typing import Generic, TypeVar

from linnet.core.effects import Deliver
from linnet.core.errors import StoreError
from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.items import Ended

_CURSORS = "cursor"
_MADE = "cursor.made"
_PLACE = Struct(">QQI")
_SINCE = Struct(">d?")

Handed = TypeVar("Handed")
"""What a window hands over, beside the word that it ended."""


class Window(Generic[Handed]):
    """Items in flight to the application, and those that wait behind them."""

    def __init__(self, subscription: int, config: DeliveryConfig) -> None:
        self.subscription = subscription
        self._config = config
        self._in_flight = 0
        self._waiting: deque[Handed] = deque()
        self.ended = False

    @property
    def room(self) -> int:
        """Items that may be handed over now."""
        return max(0, self._config.window_items - self._in_flight)

    def fits(self, items: int) -> bool:
        """Whether so many may be handed over now; more than a whole window may when nothing else is."""
        return items <= self.room or not self._in_flight

    @property
    def idle(self) -> bool:
        """Whether nothing waits and at least half of the window is free."""
        return not self._waiting and 2 * self._in_flight <= self._config.window_items

    def hand(self, items: Iterable[Handed]) -> list[Deliver[Handed | Ended]]:
        """Hand items over, or let them wait their turn; too many end the subscription."""
        if self.ended:
            return []
        batch = tuple(items)
        if not batch:
            return []
        in_flight = self._in_flight + len(batch)
        if not self._waiting and in_flight <= self._config.window_items:
            self._in_flight = in_flight
            return [Deliver(self.subscription, batch)]
        self._waiting.extend(batch)
        if len(self._waiting) > self._config.buffer_items:
            self._waiting.clear()
            return self.end(Reason.SUBSCRIBER_SLOW)
        return self._move()

    def handled(self, items: int) -> list[Deliver[Handed | Ended]]:
        """The application is done with so many."""
        self._in_flight = max(0, self._in_flight - items)
        return self._move()

    @property
    def done(self) -> bool:
        """Whether the application is done with all that it was handed."""
        return not self._in_flight and not self._waiting

    def end(self, reason: Reason | None) -> list[Deliver[Handed | Ended]]:
        """Say that nothing more comes."""
        if self.ended:
            return []
        self.ended = True
        last: tuple[Handed | Ended, ...] = (*self._waiting, Ended(reason))
        self._waiting.clear()
        return [Deliver(self.subscription, last)]

    def _move(self) -> list[Deliver[Handed | Ended]]:
        count = min(self.room, len(self._waiting))
        if count == 0:
            return []
        self._in_flight += count
        return [Deliver(self.subscription, tuple(self._waiting.popleft() for _ in range(count)))]


class Cursor:
    """The place of a durable subscription in the log.

    `StoreError` if what the store holds of it is no place.
    """

    def __init__(self, topic: TopicId, name: str, cells: Cells) -> None:
        self.topic = topic
        self._cells = cells
        self._key = topic + name.encode()
        self._due = f"due {topic.hex()} {name}"
        kept = cells.get(_CURSORS, self._key)
        self.resumed = kept is not None
        self.position, self._partly, self._skip = (0, 0, 0) if kept is None else _place(kept, name)
        # Everything up to `position` was handled, and of the unit at `_partly` the first `_skip` items:
        # a burst holds many events, and whoever has handled half of one is not handed that half again.
        self.read = self.position
        """Everything up to here was handed over."""
        self._in_flight: deque[list[int]] = deque()

    def begin(self, position: int, made_at: float | None = None) -> None:
        """A new durable subscription starts behind this position.

        If it is due only what is said after it was made, that time is written down beside its place.
        """
        self.position = self.read = position
        self._write()
        if made_at is not None:
            self._cells.put(_MADE, self._key, _SINCE.pack(made_at, False))

    def unsettled_since(self, now: float) -> float | None:
        """When it was made, as long as nobody has said what there was before; None: everything is due to it.

        So it is with all that were settled, that began at the beginning, and that version 0.1.0 made. If our
        clock is behind that time, nobody can tell how long ago it was, and nothing shall be lost.
        """
        kept = self._cells.get(_MADE, self._key)
        if kept is None or len(kept) != _SINCE.size:
            return None
        made_at, settled = _SINCE.unpack(kept)
        return None if settled else made_at if made_at <= now else 0.0

    def floors(self) -> dict[bytes, int]:
        """The first number of each chain that is due to it, where the log may hold earlier ones."""
        return {key: int.from_bytes(value, "big") for key, value in self._cells.scan(self._due)}

    def begin_at(self, chain: bytes, first: int) -> None:
        """Of this chain it is due what follows from this number on, whatever the log holds for others."""
        self._cells.put(self._due, chain, first.to_bytes(8, "big"))

    def settle(self) -> None:
        """Somebody who keeps the topic has said what there was before: what it did not name is new."""
        kept = self._cells.get(_MADE, self._key)
        if kept is not None and len(kept) == _SINCE.size:
            self._cells.put(_MADE, self._key, _SINCE.pack(_SINCE.unpack(kept)[0], True))

    def skipped(self, position: int) -> int:
        """How many items of the unit at this position were handled before."""
        return self._skip if position == self._partly else 0

    def handed(self, position: int, items: int) -> None:
        """The unit at this position was handed over, as so many items, without those `skipped`."""
        self.read = position
        self._in_flight.append([position, items, self.skipped(position)])

    def handled(self, items: int) -> bool:
        """The application is done with so many items; whether the cursor moved."""
        before = (self.position, self._partly, self._skip)
        while items and self._in_flight:
            unit = self._in_flight[0]
            taken = min(items, unit[1])
            unit[1] -= taken
            unit[2] += taken
            items -= taken
            self._partly, self._skip = unit[0], unit[2]
            if unit[1] == 0:
                self.position = self._in_flight.popleft()[0]
                self._partly = self._skip = 0
        if (self.position, self._partly, self._skip) == before:
            return False
        self._write()
        return True

    def _write(self) -> None:
        self._cells.put(_CURSORS, self._key, _PLACE.pack(self.position, self._partly, self._skip))


def _place(kept: bytes, name: str) -> tuple[int, int, int]:
    if len(kept) != _PLACE.size:
        raise StoreError(
            f"the place of the subscription {name!r} has {len(kept)} bytes, not {_PLACE.size}: "
            "the store is damaged or of another version; subscribe under another name"
        )
    position, partly, skip = _PLACE.unpack(kept)
    return position, partly, skip


def has_cursor(cells: Cells, topic: TopicId) -> bool:
    """Whether a durable subscription of this topic was ever begun: it may come back for what it missed."""
    return any(key.startswith(topic) for key, _ in cells.scan(_CURSORS))
