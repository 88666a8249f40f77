"""A subscription of the local application: the items that were handed over, handled, or wait.

A live subscription is handed events as they arrive. A durable one is a cursor over the log: it is handed what
the log holds past its cursor, so that a crash repeats unacknowledged items and loses nothing. Both stop at a
window of items that the application has not handled yet; then a durable one waits in the log, and a live one
in a bounded buffer. If that overflows, it ends with a reason.

Methods that hand items over take a sink: it sends them at once or after a commit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Generic, TypeVar

from linnet.core.errors import StoreError
from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells, EventLog
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.items import Ended, Item, missed_by_damage
from linnet.event.event import Event, Verified
from linnet.event.signing import decode_unit, recall_unit
from linnet.event.times import doubt_unit
from linnet.machine.outbox import Sink

_CURSORS = "cursor"
_MADE = "cursor.made"
_PLACE = Struct(">QQI")
_SINCE = Struct(">d?")
_PAGE = 256
"""Units that are read from the log in one go."""

Handed = TypeVar("Handed")
"""The items that a window hands over, apart from `Ended`."""


class Window(Generic[Handed]):
    """The items in flight to the application, and those that wait behind them."""

    def __init__(self, subscription: int, config: DeliveryConfig) -> None:
        self.subscription = subscription
        self._config = config
        self._in_flight = 0
        self._waiting: deque[Handed] = deque()
        self.ended = False

    @property
    def room(self) -> int:
        """The number of items that may be handed over now."""
        return max(0, self._config.window_items - self._in_flight)

    def fits(self, items: int) -> bool:
        """Return whether this many items may be handed over now; any number may if none is in flight."""
        return items <= self.room or not self._in_flight

    @property
    def idle(self) -> bool:
        """Whether nothing waits and at least half of the window is free."""
        return not self._waiting and 2 * self._in_flight <= self._config.window_items

    def hand(self, items: Iterable[Handed], out: Sink) -> bool:
        """Hand items over, or queue them; too many end the subscription.

        Returns whether anything was handed over, including `Ended`.
        """
        if self.ended:
            return False
        batch = tuple(items)
        if not batch:
            return False
        in_flight = self._in_flight + len(batch)
        if not self._waiting and in_flight <= self._config.window_items:
            self._in_flight = in_flight
            out.deliver(self.subscription, batch)
            return True
        self._waiting.extend(batch)
        if len(self._waiting) > self._config.buffer_items:
            self._waiting.clear()
            self.end(Reason.SUBSCRIBER_SLOW, out)
            return True
        return self._hand_waiting(out)

    def handle_consumed(self, items: int, out: Sink) -> None:
        """Hand over waiting items: the application has handled this many."""
        self._in_flight = max(0, self._in_flight - items)
        self._hand_waiting(out)

    @property
    def done(self) -> bool:
        """Whether the application has handled all items and none waits."""
        return not self._in_flight and not self._waiting

    def end(self, reason: Reason | None, out: Sink) -> None:
        """End the subscription: hand over the waiting items and `Ended`, once."""
        if self.ended:
            return
        self.ended = True
        last: tuple[Handed | Ended, ...] = (*self._waiting, Ended(reason))
        self._waiting.clear()
        out.deliver(self.subscription, last)

    def _hand_waiting(self, out: Sink) -> bool:
        count = min(self.room, len(self._waiting))
        if count == 0:
            return False
        self._in_flight += count
        out.deliver(self.subscription, tuple(self._waiting.popleft() for _ in range(count)))
        return True


class Cursor:
    """The place of a durable subscription in the log.

    Raises `StoreError` if the stored place is invalid.
    """

    def __init__(self, topic: TopicId, name: str, cells: Cells) -> None:
        self.topic = topic
        self._cells = cells
        self._key = topic + name.encode()
        self._due = f"due {topic.hex()} {name}"
        kept = cells.get(_CURSORS, self._key)
        self.resumed = kept is not None
        self.position, self._partly, self._skip = (0, 0, 0) if kept is None else _place(kept, name)
        # Everything up to `position` was handled, and the first `_skip` items of the unit at `_partly`: a
        # burst holds many events, and after half of one was handled, that half is not handed over again.
        self.read = self.position
        """The position up to which everything was handed over."""
        self._in_flight: deque[list[int]] = deque()

    def begin(self, position: int, made_at: float | None = None) -> None:
        """Start a new durable subscription behind a position.

        `made_at` is given if it wants only what is published after that; the time is stored beside its place.
        """
        self.position = self.read = position
        self._write()
        if made_at is not None:
            self._cells.put(_MADE, self._key, _SINCE.pack(made_at, False))

    def unsettled_since(self, now: float) -> float | None:
        """Return when it was made, until it is known which events are older; None: everything is due to it.

        It is None for subscriptions that were settled, that began at the beginning, or that version 0.1.0
        made. If our clock is behind that time, 0 is returned: we cannot tell how long ago it was, and must
        lose nothing.
        """
        kept = self._cells.get(_MADE, self._key)
        if kept is None or len(kept) != _SINCE.size:
            return None
        made_at, settled = _SINCE.unpack(kept)
        return None if settled else made_at if made_at <= now else 0.0

    def floors(self) -> dict[bytes, int]:
        """Return the first number of each chain that is due to it, where the log may hold earlier ones."""
        return {key: int.from_bytes(value, "big") for key, value in self._cells.scan(self._due)}

    def begin_at(self, chain: bytes, first: int) -> None:
        """Store that in this chain only events from this number on are due to it, whatever the log holds."""
        self._cells.put(self._due, chain, first.to_bytes(8, "big"))

    def settle(self) -> None:
        """Note that a storage node has said which events came before: those it did not name are new."""
        kept = self._cells.get(_MADE, self._key)
        if kept is not None and len(kept) == _SINCE.size:
            self._cells.put(_MADE, self._key, _SINCE.pack(_SINCE.unpack(kept)[0], True))

    def count_skipped(self, position: int) -> int:
        """Return how many items of the unit at this position were handled before."""
        return self._skip if position == self._partly else 0

    def note_handed(self, position: int, items: int) -> None:
        """Note that the unit at this position was handed over as this many items, less the skipped ones."""
        self.read = position
        self._in_flight.append([position, items, self.count_skipped(position)])

    def note_handled(self, items: int) -> bool:
        """Note that the application has handled this many items; return whether the cursor moved."""
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
    """Return whether a durable subscription of this topic was ever begun: it may resume later."""
    return any(key.startswith(topic) for key, _ in cells.scan(_CURSORS))


class LogReader:
    """A subscription that is handed what the log of its topic holds.

    While the application is slow it waits in the log, not in memory. Its subclasses, for streams and for
    rooms, choose the events to show, and how.
    """

    __slots__ = ("behind", "cursor", "read", "topic", "window")

    def __init__(
        self, topic: TopicId, window: Window[Item], cursor: Cursor | None, after: int | None
    ) -> None:
        self.topic = topic
        self.window = window
        self.cursor = cursor
        self.read = cursor.read if cursor is not None else after or 0
        """The log position up to which everything was handed over or is not for this subscription."""
        self.behind = cursor is not None or after is not None
        """Whether the log may hold events for it that were not handed over."""

    def hand_written(self, position: int, events: Sequence[Event], out: Sink) -> bool:
        """Hand over the events of a unit as it is written, unless others must come first.

        Returns whether any of them was handed over.
        """
        if self.behind or self.window.ended:
            return False
        if not self.window.fits(len(events)):
            self.behind = True
            return False
        return self.hand_events(position, events, out)

    def hand_log(self, log: EventLog, out: Sink) -> None:
        """Hand over the events in the log, as far as there is room."""
        while self.behind and not self.window.ended:
            found = log.read(self.topic, self.read, _PAGE)
            for position, entry in found:
                unit = doubt_unit(recall_unit(decode_unit(entry.raw)), entry.stored_at)
                events = self.visible_events(unit)
                if self.cursor is not None:
                    events = events[self.cursor.count_skipped(position) :]
                if not self.window.fits(len(events)):
                    return
                if self.hand_events(position, events, out):
                    self.record_handed(events, out)
            for missed in missed_by_damage(log.left_out):
                self.tell(missed, out)
            if len(found) < _PAGE:
                self.behind = False
                self.note_end(log, out)

    def tell(self, item: Item, out: Sink) -> None:
        """Hand over an item that is not in the log; a cursor counts it, as the application does."""
        if self.cursor is not None:
            self.cursor.note_handed(self.read, 1)
        self.window.hand((item,), out)

    def handle_consumed(self, items: int, log: EventLog, out: Sink) -> None:
        """Hand over waiting items: the application has handled this many."""
        self.window.handle_consumed(items, out)
        if self.cursor is not None:
            self.cursor.note_handled(items)
        self.hand_log(log, out)

    def visible_events(self, verified: Verified) -> Sequence[Event]:
        """Return the events of a unit that are for this subscription."""
        return verified.events

    def hand_events(self, position: int, events: Sequence[Event], out: Sink) -> bool:
        """Hand over events of the unit at a position; return whether any was handed over."""
        self.read = position
        if self.cursor is not None:
            self.cursor.note_handed(position, len(events))
        return self.window.hand(events, out)

    def record_handed(self, events: Sequence[Event], out: Sink) -> None:
        """Record events that were handed over from the log."""

    def note_end(self, log: EventLog, out: Sink) -> None:
        """Note that the log was read to its end."""
