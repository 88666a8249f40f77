"""The messages that change state or carry its hash: those since the last verified hash, and some before.

Since the hash: what somebody needs who is given the whole state as of it, and so what is never evicted.
Before it: a cut may take the hash itself out of the line, and then the voice has to name what changed state
last. It is the distance to that message by which others know where the next change belongs.
"""

from __future__ import annotations

from linnet.core.ids import TopicId
from linnet.core.stores import Cells
from linnet.places.channel.rows import Mark

_APPLIED, _HASH = int(Mark.APPLIED), int(Mark.HASH)
_STATE = 128
"""In a cell, beside the marks: the message changes state."""
BEFORE = 4096
"""Messages before the last verified hash that stay known, at least: as many as `StateOrder` can undo."""


class StateIndex:
    """Those of one place, one cell each: all that are held from the lowest of them on."""

    def __init__(self, place: TopicId, cells: Cells) -> None:
        self._cells = cells
        self._space = f"place state index {place.hex()}"
        self._marks = {int.from_bytes(key, "big"): raw[0] for key, raw in cells.scan(self._space)}
        self.base = self._last(Mark.HASH)
        """The last message whose hash was verified; 0: none."""
        self.applied = self._last(Mark.APPLIED)
        """The last message whose modifiers were applied; 0: none."""

    def messages(self) -> list[int]:
        """The messages behind the base that change state."""
        found = (number for number, marks in self._marks.items() if marks & _STATE and number > self.base)
        return sorted(found)

    def needs(self, message: int) -> bool:
        """Whether a message must be kept for the sake of state."""
        return message in self._marks and message >= self.base

    def highest(self, most: int) -> int | None:
        """The last message up to this one that changes state; None: it is not known here."""
        known = (number for number, marks in self._marks.items() if marks & _STATE and number <= most)
        return max(known, default=None)

    @property
    def lowest(self) -> int | None:
        """From this message on all that are held are known here; None: none is."""
        return min(self._marks, default=None)

    def add(self, message: int, changes_state: bool) -> None:
        """A message that changes state, or carries its hash, has begun."""
        # Before the hash there are no gaps in what is known: one that is older than all of it stays out.
        if message > self.base or message > min(self._marks, default=message):
            self._set(message, self._marks.get(message, 0) | (_STATE if changes_state else 0))

    def mark(self, message: int, marks: Mark) -> None:
        """Note what became of it. A verified hash lets go of what is long before it."""
        flags = int(marks)
        self._set(message, self._marks.get(message, 0) | flags)
        if flags & _APPLIED:
            self.applied = max(self.applied, message)
        if flags & _HASH and message > self.base:
            self.base = message
            if len(self._marks) > 2 * BEFORE:
                before = sorted(number for number in self._marks if number < message)
                for number in before[:-BEFORE]:
                    self._delete(number)

    def cut(self, after: int) -> None:
        """Messages behind this one are no part of the line any more."""
        for number in [number for number in self._marks if number > after]:
            self._delete(number)
        self.base = self._last(Mark.HASH)
        self.applied = self._last(Mark.APPLIED)

    def _last(self, mark: Mark) -> int:
        return max((number for number, marks in self._marks.items() if marks & mark), default=0)

    def _set(self, message: int, marks: int) -> None:
        self._marks[message] = marks
        self._cells.put(self._space, message.to_bytes(8, "big"), bytes([marks]))

    def _delete(self, message: int) -> None:
        del self._marks[message]
        self._cells.delete(self._space, message.to_bytes(8, "big"))
