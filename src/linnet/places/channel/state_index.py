"""The messages that change state or carry its hash, from the last verified hash on.

That is what somebody needs who is given the whole state as of that hash, and so what is never evicted.
"""

from __future__ import annotations

from linnet.core.ids import TopicId
from linnet.core.stores import Cells
from linnet.places.channel.rows import Mark

_APPLIED, _HASH = int(Mark.APPLIED), int(Mark.HASH)
_STATE = 128
"""In a cell, beside the marks: the message changes state."""


class StateIndex:
    """Those of one place, one cell each; there are about as many as messages between two hashes."""

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

    def highest(self, most: int) -> int:
        """The last message up to this one that changes state; 0: none is known."""
        known = (number for number, marks in self._marks.items() if marks & _STATE and number <= most)
        return max(known, default=0)

    def add(self, message: int, changes_state: bool) -> None:
        """A message that changes state, or carries its hash, has begun."""
        if message > self.base:
            self._set(message, self._marks.get(message, 0) | (_STATE if changes_state else 0))

    def mark(self, message: int, marks: Mark) -> None:
        """Note what became of it. A verified hash lets go of everything before, but for the message
        that changed state last: the distance to it is told with the next one."""
        flags = int(marks)
        self._set(message, self._marks.get(message, 0) | flags)
        if flags & _APPLIED:
            self.applied = max(self.applied, message)
        if flags & _HASH and message > self.base:
            self.base = message
            latest = self.highest(message)
            for number in [number for number in self._marks if number < message and number != latest]:
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
