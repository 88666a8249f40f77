"""Messages cut into pieces while they are still being written (Toth 2013, section 3.4).

A piece leaves as soon as it is full, so the first may leave long before the body ends. Open messages
take turns piece by piece: a small one gets in between the pieces of a large one.
"""

from __future__ import annotations

from typing import NamedTuple

from linnet.core.errors import Refused
from linnet.core.reasons import Reason
from linnet.places.multicast.head import FIRST, LAST, PIECE_BYTES

HELD_PIECES = 16
"""Pieces of one message that wait to be taken; whoever writes faster has to wait."""
OPEN_MESSAGES = 256
"""Messages that may be open at once."""


class Piece(NamedTuple):
    """Bytes of one message that fit into one fragment."""

    message: int
    """As `Cutting.open` called it."""
    offset: int
    data: bytes
    is_first: bool
    is_last: bool

    @property
    def flags(self) -> int:
        """Its part of the flags in the head."""
        return (FIRST if self.is_first else 0) | (LAST if self.is_last else 0)


class _Open:
    __slots__ = ("begun", "data", "finished", "flushed", "offset")

    def __init__(self) -> None:
        self.data = bytearray()
        self.offset = 0
        self.begun = False
        self.finished = False
        self.flushed = 0
        """Bytes at the front that go even if they fill no piece."""


class Cutting:
    """All messages that are being sent, in turn."""

    def __init__(self, piece_bytes: int = PIECE_BYTES, held_pieces: int = HELD_PIECES) -> None:
        self._piece = piece_bytes
        self._most = piece_bytes * held_pieces
        self._open: dict[int, _Open] = {}

    def __len__(self) -> int:
        return len(self._open)

    def open(self, message: int) -> None:
        """Begin a message under a number of the caller's; `Refused` if it, or too much, is open."""
        if message in self._open:
            raise Refused(Reason.IN_USE, f"message {message} is open already")
        if len(self._open) >= OPEN_MESSAGES:
            raise Refused(Reason.TOO_MANY, f"{OPEN_MESSAGES} messages are open")
        self._open[message] = _Open()

    def reopen(self, message: int, offset: int) -> None:
        """Go on with a message of which so many bytes were sent before we stopped."""
        self.open(message)
        self._open[message].offset = offset
        self._open[message].begun = True

    def room(self, message: int) -> int:
        """Bytes that this message takes now before pieces have to be taken."""
        return self._most - len(self._writable(message).data)

    def feed(self, message: int, data: bytes) -> None:
        """More of the body; `Refused` with ``queue_full`` if it is more than there is room for."""
        entry = self._writable(message)
        if len(entry.data) + len(data) > self._most:
            raise Refused(Reason.QUEUE_FULL, f"message {message} has {len(entry.data)} bytes waiting")
        entry.data += data

    def flush(self, message: int) -> None:
        """Let what is there go, though it fills no piece: the rest may take long."""
        entry = self._writable(message)
        entry.flushed = len(entry.data)

    def finish(self, message: int) -> None:
        """The body ends here."""
        self._writable(message).finished = True

    def abandon(self, message: int) -> int:
        """Forget a message, as when the term ends; the bytes that were not sent."""
        entry = self._open.pop(message, None)
        return 0 if entry is None else len(entry.data)

    def take(self) -> Piece | None:
        """The next piece: of the message whose turn it is; None if nothing can leave now."""
        for message, entry in self._open.items():
            if entry.finished or entry.flushed or len(entry.data) >= self._piece:
                return self._cut(message, entry)
        return None

    def _cut(self, message: int, entry: _Open) -> Piece:
        data = bytes(entry.data[: self._piece])
        del entry.data[: self._piece]
        is_last = entry.finished and not entry.data
        piece = Piece(message, entry.offset, data, not entry.begun, is_last)
        entry.begun = True
        entry.offset += len(data)
        entry.flushed = max(0, entry.flushed - len(data))
        del self._open[message]  # to the end of the line
        if not is_last:
            self._open[message] = entry
        return piece

    def _writable(self, message: int) -> _Open:
        entry = self._open.get(message)
        if entry is None or entry.finished:
            raise Refused(Reason.UNKNOWN, f"message {message} is not open")
        return entry
