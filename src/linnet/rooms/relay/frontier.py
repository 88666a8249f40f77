"""What a relay has taken of one room, in one number and one digest, and the statements that it signs of it.

They are stored together with each event, so that a statement, which is sent after the commit, never says more
than what a crash leaves. Each run of the relay signs under a line of its own: a copy of the store that is
restored later begins another line, and so never contradicts what was signed after the copy was made.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

import msgspec
from msgspec import Struct

from linnet.core.ids import EventId, TopicId
from linnet.core.stores import Cells
from linnet.delivery.context import Context
from linnet.rooms.relay_statements import (
    LINES,
    HeldEvent,
    Line,
    NotHeld,
    Reach,
    RelayStatement,
    sign_statement,
)

_SPACE = "relay.frontier"


class _Kept(Struct, frozen=True, array_like=True, gc=False):
    """The frontier as it is stored."""

    line: bytes
    count: int
    digest: bytes
    past: tuple[Line, ...]


_NEW = _Kept(b"", 0, bytes(32), ())
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Kept).decode


class Frontier:
    """The number and the running digest of the events that were ever taken of one room."""

    def __init__(self, room: TopicId, cells: Cells) -> None:
        self._room = room
        self._cells = cells
        raw = cells.get(_SPACE, room)
        self._kept = _NEW if raw is None else _decode(raw)
        self._line: bytes | None = None
        """The line of this run; None until it signs something."""

    @property
    def count(self) -> int:
        """The number of the events that were ever taken."""
        return self._kept.count

    def add(self, event: EventId, position: int) -> None:
        """Count an event that is being stored at this position."""
        kept = self._kept if self._line is not None else self._kept_by_line()
        digest = sha256(kept.digest + position.to_bytes(8, "big") + event).digest()
        self._write(_Kept(kept.line, kept.count + 1, digest, kept.past))

    def begin_anew(self) -> None:
        """Begin a line that continues nothing: part of what was signed before may be lost here."""
        self._line = None
        self._write(_Kept(b"", self._kept.count, self._kept.digest, ()))

    def forget(self) -> None:
        """Forget it: the room is not served any more."""
        self._line, self._kept = None, _NEW
        self._cells.delete(_SPACE, self._room)

    def sign(
        self,
        context: Context,
        held: Iterable[HeldEvent],
        refused: Iterable[NotHeld],
        reach: Reach | None,
        now: float,
    ) -> RelayStatement:
        """Sign a statement. It says what was written so far, so send it after the commit."""
        if self._line is None:
            self._begin_line(context.entropy(8))
        kept = self._kept
        said = RelayStatement(
            kept.line,
            kept.count,
            kept.digest,
            kept.past,
            max(0, int(now * 1000)),
            tuple(held),
            tuple(refused),
            reach,
            bytes(64),
        )
        return sign_statement(context.key, self._room, said)

    def _begin_line(self, line: bytes) -> None:
        kept = self._kept_by_line()
        self._line = line
        self._write(_Kept(line, kept.count, kept.digest, kept.past))

    def _kept_by_line(self) -> _Kept:
        """Return what is stored, with the line of the last run among the earlier ones.

        That line ends where this run begins: a restored copy may take as many events as it lost before it
        signs anything, but other ones.
        """
        kept = self._kept
        if not kept.line:
            return kept
        past = (Line(kept.line, kept.count), *kept.past)
        return _Kept(b"", kept.count, kept.digest, past[:LINES])

    def _write(self, kept: _Kept) -> None:
        self._kept = kept
        self._cells.put(_SPACE, self._room, _encode(kept))


class Statements:
    """Signs what one room's relay answers."""

    def __init__(self, frontier: Frontier, context: Context) -> None:
        self._frontier = frontier
        self._context = context
        self._last: tuple[tuple[object, ...], RelayStatement] | None = None
        """The last statement on pushed events: many followers are owed the same."""

    def sign_answer(
        self, held: Iterable[HeldEvent], refused: Iterable[NotHeld], now: float
    ) -> RelayStatement:
        """Sign which of the sent events are kept."""
        return self._frontier.sign(self._context, held, refused, None, now)

    def sign_page(self, held: tuple[HeldEvent, ...], reach: Reach, now: float) -> RelayStatement:
        """Sign that these are all events within reach."""
        if reach.gone:
            self._frontier.begin_anew()
        asked = (self._frontier.count, held, reach)
        if self._last is None or self._last[0] != asked:
            self._last = (asked, self._frontier.sign(self._context, held, (), reach, now))
        return self._last[1]
