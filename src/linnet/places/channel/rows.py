"""What is remembered of each fragment beside its bytes, in the log: the table of fragments of all places."""

from __future__ import annotations

from enum import IntFlag
from struct import Struct as Packing
from typing import NamedTuple

from linnet.core.ids import EventId, TopicId
from linnet.core.stores import Cells
from linnet.places.multicast.head import FIRST, LAST, Head

_FRAGMENTS = "place fragment"
_MESSAGES = "place message"
_packing = Packing(">32sQQQQQIBB")
_number = Packing(">Q")
_pair = Packing(">QQ")


class Mark(IntFlag):
    """What became of a message's modifiers here (Toth 2013, table 5.1, `psyc_flags`)."""

    APPLIED = 1
    """They were applied to the state; this may be later than they came."""
    HASH = 2
    """Its hash was compared with our state and fits."""
    CHANGE = 4
    """It announces a change of membership."""


class Row(NamedTuple):
    """One fragment of the line, without its bytes."""

    fragment: int
    event: EventId
    position: int
    """Where the log had it when it was stored; 0: not known."""
    term: int
    message: int
    offset: int
    generation: int
    length: int
    """Bytes of the message, without what encryption adds."""
    flags: int
    marks: int

    @property
    def is_first(self) -> bool:
        """Whether its message begins here."""
        return self.flags & FIRST != 0

    @property
    def is_last(self) -> bool:
        """Whether its message ends here."""
        return self.flags & LAST != 0

    @property
    def end(self) -> int:
        """The offset of the piece that follows."""
        return self.offset + self.length

    @property
    def next_generation(self) -> int:
        """The generation of what follows, as far as this fragment tells."""
        leaves = self.marks & _CHANGE != 0 and not self.flags & _JOINS
        return self.generation + leaves


_CHANGE = int(Mark.CHANGE)
_JOINS = 128
"""In a row's flags: the change that it announces is a join."""


def make_row(head: Head, event: EventId, position: int, length: int) -> Row:
    """The row of a fragment that was just stored."""
    marks, flags = 0, head.flags
    if head.change is not None:
        marks, flags = _CHANGE, flags | (_JOINS if head.change.joins else 0)
    return Row(
        head.fragment,
        event,
        position,
        head.term,
        head.message,
        head.offset,
        head.generation,
        length,
        flags,
        marks,
    )


def encode_row(row: Row) -> bytes:
    """A row for a cell, without its number, which the key has."""
    return _packing.pack(*row[1:])


def decode_row(fragment: int, raw: bytes) -> Row:
    """A row from a cell of our own."""
    return Row(fragment, *_packing.unpack(raw))


class Rows:
    """The rows of one place, by their number and by message and offset."""

    def __init__(self, place: TopicId, cells: Cells) -> None:
        self._place = place
        self._cells = cells

    def get(self, fragment: int) -> Row | None:
        """The row of this number."""
        raw = self._cells.get(_FRAGMENTS, self._place + _number.pack(fragment))
        return None if raw is None else decode_row(fragment, raw)

    def at(self, message: int, offset: int) -> Row | None:
        """The row of the piece of a message that begins here."""
        raw = self._cells.get(_MESSAGES, self._place + _pair.pack(message, offset))
        return None if raw is None else self.get(_number.unpack(raw)[0])

    def put(self, row: Row) -> None:
        """Write a row anew."""
        self._cells.put(_FRAGMENTS, self._place + _number.pack(row.fragment), encode_row(row))
        key = self._place + _pair.pack(row.message, row.offset)
        self._cells.put(_MESSAGES, key, _number.pack(row.fragment))

    def update(self, row: Row) -> None:
        """Write a row whose message and offset stay."""
        self._cells.put(_FRAGMENTS, self._place + _number.pack(row.fragment), encode_row(row))

    def delete(self, row: Row) -> None:
        """Forget a row."""
        self._cells.delete(_FRAGMENTS, self._place + _number.pack(row.fragment))
        self._cells.delete(_MESSAGES, self._place + _pair.pack(row.message, row.offset))
