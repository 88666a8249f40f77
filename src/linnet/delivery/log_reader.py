"""A subscription that lives on the log: where everything is written, the log is what is handed over.

Durable ones keep their place in the store; others only here. Both wait in the log, not in memory, while
the application is slow.
"""

from __future__ import annotations

from collections.abc import Callable

from linnet.core.effects import Deliver
from linnet.core.ids import TopicId
from linnet.core.stores import EventLog
from linnet.delivery.items import CaughtUp, Item, Unreadable, missed_by_damage
from linnet.delivery.subscription import Cursor, Window
from linnet.event.event import Event
from linnet.event.signing import decode_unit, recall_unit

_PAGE = 256
"""Units that are read from the log at once."""

Shown = Callable[[Event], Event | Unreadable | None]
"""An event of the log as this reader is to see it; None: not at all."""


class LogReader:
    """One subscription over the log of one topic."""

    def __init__(
        self,
        topic: TopicId,
        window: Window[Item],
        cursor: Cursor | None,
        after: int,
        live: bool,
        shown: Shown,
    ) -> None:
        self.window = window
        self.cursor = cursor
        self._topic = topic
        self._read = after if cursor is None else cursor.read
        """Everything up to here was handed over, or is not for this reader."""
        self._live = live
        self._shown = shown
        self._behind = True
        self._told = False

    @property
    def read(self) -> int:
        """Everything of the log up to here was handed over, or is not for this reader."""
        return self._read

    def written(self, position: int, event: Event) -> list[Deliver[Item]]:
        """An event was appended to the log; to be performed after the commit."""
        if self._behind or self.window.ended:
            return []
        if not self.window.fits(1):
            self._behind = True
            return []
        return self._hand(position, event)

    def pump(self, log: EventLog) -> list[Deliver[Item]]:
        """Hand over what the log holds, as far as there is room."""
        effects: list[Deliver[Item]] = []
        while self._behind and not self.window.ended:
            found = log.read(self._topic, self._read, _PAGE)
            for position, entry in found:
                if not self.window.fits(1):
                    return effects
                for event in recall_unit(decode_unit(entry.raw)).events:
                    effects += self._hand(position, event)
            for missed in missed_by_damage(log.left_out):
                effects += self.note(missed)
            if len(found) < _PAGE:
                self._behind = False
                effects += self._caught_up(log)
        return effects

    def note(self, item: Item) -> list[Deliver[Item]]:
        """Hand over something that is no event."""
        if self.cursor is not None:
            self.cursor.handed(self._read, 1)
        return self.window.hand((item,))

    def handled(self, items: int, log: EventLog) -> list[Deliver[Item]]:
        """The application is done with so many items."""
        effects = self.window.handled(items)
        if self.cursor is not None:
            self.cursor.handled(items)
        return [*effects, *self.pump(log)]

    def _hand(self, position: int, event: Event) -> list[Deliver[Item]]:
        self._read = position
        seen = self._shown(event)
        if seen is None:
            return []
        if self.cursor is not None:
            self.cursor.handed(position, 1)
        return self.window.hand((seen,))

    def _caught_up(self, log: EventLog) -> list[Deliver[Item]]:
        if self._told:
            return []
        self._told = True
        effects = self.note(CaughtUp(log.kept(self._topic).oldest, False, None))
        return effects if self._live else [*effects, *self.window.end(None)]
