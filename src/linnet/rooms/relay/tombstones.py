"""What a relay kept and keeps no longer, remembered by id.

So an event that comes again is not taken for a new one, and its author learns what became of it. The
oldest of too many is forgotten.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from linnet.core.ids import AuthorId, EventId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.rooms.messages import Tombstone

_encode = msgspec.msgpack.Encoder().encode


class Gone(Struct, frozen=True, array_like=True, gc=False):
    """An event that was let go."""

    event: EventId
    author: AuthorId
    reason: Reason
    end: int
    """The end of the log when it went: whoever asks from a cursor before it has not been told."""


_decode = msgspec.msgpack.Decoder(Gone).decode


class Tombstones:
    """The events of one room that were let go, in the order in which they went."""

    def __init__(self, room: TopicId, cells: Cells, most: int) -> None:
        self._cells = cells
        self._space = f"relay.gone/{room.hex()}"
        self._most = most
        self._numbers: dict[EventId, int] = {}
        self._gone: dict[int, Gone] = {}
        self._next = 0
        for key, value in cells.scan(self._space):
            self._note(int.from_bytes(key, "big"), _decode(value))

    def __len__(self) -> int:
        return len(self._gone)

    @property
    def next(self) -> int:
        """The number that the next one gets."""
        return self._next

    def add(self, gone: Gone) -> None:
        """Remember one more."""
        if self._most <= 0:
            return
        self._cells.put(self._space, self._next.to_bytes(8, "big"), _encode(gone))
        self._note(self._next, gone)
        while len(self._gone) > self._most:
            self._forget(next(iter(self._gone)))

    def reason(self, event: EventId) -> Reason | None:
        """Why an event was let go; None if it was not, or that was forgotten."""
        number = self._numbers.get(event)
        return None if number is None else self._gone[number].reason

    def first(self, position: int) -> int:
        """The number of the first that someone with this cursor may not have been told of."""
        for number, gone in reversed(self._gone.items()):
            if gone.end < position:
                return number + 1
        return next(iter(self._gone), self._next)

    def of(self, author: AuthorId, start: int, limit: int) -> tuple[list[Tombstone], int]:
        """Those of a person from a number on, and the number to go on from."""
        found: list[Tombstone] = []
        for number in range(max(start, next(iter(self._gone), self._next)), self._next):
            gone = self._gone[number]
            if gone.author == author:
                if len(found) == limit:
                    return found, number
                found.append(Tombstone(gone.event, gone.reason))
        return found, self._next

    def clear(self) -> None:
        """Forget all of them."""
        for number in list(self._gone):
            self._forget(number)

    def _note(self, number: int, gone: Gone) -> None:
        self._gone[number] = gone
        self._numbers[gone.event] = number
        self._next = number + 1

    def _forget(self, number: int) -> None:
        gone = self._gone.pop(number)
        if self._numbers.get(gone.event) == number:
            del self._numbers[gone.event]
        self._cells.delete(self._space, number.to_bytes(8, "big"))
