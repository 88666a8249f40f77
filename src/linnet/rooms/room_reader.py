"""One subscription of a room: history in the room's one order, then what comes, as it comes.

Whatever comes later than what belongs behind it is marked. A durable subscription is handed the log
as it was written, since its place in it is what it goes on from.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import deque
from collections.abc import Callable

from linnet.core.effects import Deliver
from linnet.core.ids import EventId, TopicId
from linnet.core.stores import EventLog
from linnet.delivery.items import Inserted, Item
from linnet.delivery.log_reader import LogReader, Shown
from linnet.delivery.subscription import Cursor, Window
from linnet.event.event import Event
from linnet.event.signing import decode_unit, recall_unit
from linnet.rooms.timeline import Key

_PAGE = 256
_REMEMBERED = 1024
"""Events that were handed over last, which another may belong before."""


class RoomReader(LogReader):
    """A subscription over the log of one room."""

    def __init__(
        self,
        room: TopicId,
        window: Window[Item],
        cursor: Cursor | None,
        after: int,
        live: bool,
        shown: Shown,
        key: Callable[[EventId], Key],
        arranged: bool,
    ) -> None:
        super().__init__(room, window, cursor, after, live, shown)
        self._key = key
        self._arranges = arranged
        self._history: deque[EventId] = deque()
        """What is still to be handed over, in the room's order."""
        self._late: dict[EventId, None] = {}
        """Those of them that came after what belongs behind them."""
        self._last: list[Key] = []

    def pump(self, log: EventLog) -> list[Deliver[Item]]:
        """Hand over what the log holds, as far as there is room."""
        if self._arranges:
            self._arranges = False
            self._arrange(log)
        effects: list[Deliver[Item]] = []
        while self._history and not self.window.ended:
            if not self.window.fits(1):
                return effects
            entry = log.get(self._history.popleft())
            for event in () if entry is None else recall_unit(decode_unit(entry.raw)).events:
                effects += self._hand(self._read, event)
        return [*effects, *super().pump(log)]

    def _arrange(self, log: EventLog) -> None:
        """Put all that is there now into the room's order."""
        latest: Key | None = None
        keys: list[Key] = []
        while page := log.read(self._topic, self._read, _PAGE):
            for position, entry in page:
                self._read = position
                key = self._key(entry.head)
                keys.append(key)
                if latest is not None and key < latest:
                    self._late[entry.head] = None
                else:
                    latest = key
        self._history.extend(event for _, event in sorted(keys))

    def _hand(self, position: int, event: Event) -> list[Deliver[Item]]:
        self._read = position
        seen = self._shown(event)
        if seen is None:
            return []
        effects: list[Deliver[Item]] = []
        before = self._belongs_before(event.id)
        if before is not None:
            effects += self.note(Inserted(self._topic, event.id, before))
        if self.cursor is not None:
            self.cursor.handed(position, 1)
        return [*effects, *self.window.hand((seen,))]

    def reveal(self, position: int, event: Event) -> list[Deliver[Item]]:
        """An event of the log that was hidden is shown: who is past it is handed it now, as an insertion."""
        if position > self._read:
            return self.written(position, event)
        seen = None if self.window.ended else self._shown(event)
        if seen is None or event.id in self._history:
            return []
        before = self._belongs_before(event.id)
        effects = [] if before is None else self.note(Inserted(self._topic, event.id, before))
        return [*effects, *self.note(seen)]

    def _belongs_before(self, event: EventId) -> EventId | None:
        """What was handed over, or had come, before this event and belongs behind it; None: nothing."""
        key = self._key(event)
        place = bisect_right(self._last, key)
        behind = self._last[place][1] if place < len(self._last) else None
        insort(self._last, key)
        if len(self._last) > _REMEMBERED:
            del self._last[0]
        if event in self._late and self._history:
            return self._history[0]
        return behind
