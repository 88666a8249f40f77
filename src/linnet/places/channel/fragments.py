"""The fragments of one place: their bytes in the log, their places in the line beside it.

Toth 2013, section 5.1: a fragment is found by its number, and by its message and offset. What came
is never changed and never stored twice. All that is known at the start is in a few cells: nothing of
a large place is read through. A body of any size goes through here piece by piece.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from linnet.core.errors import InvalidEvent
from linnet.core.ids import EventId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells, Entry, EventLog
from linnet.delivery.ranges import Range
from linnet.event.event import Unverified, Verified
from linnet.event.signing import decode_unit, encode_unit, recall_unit
from linnet.places.channel.numbers import Numbers
from linnet.places.channel.rows import Mark, Row, Rows, decode_row, encode_row, make_row
from linnet.places.channel.spans import MOST_SPANS, Spans, decode_spans, encode_spans
from linnet.places.channel.state_index import StateIndex
from linnet.places.multicast.head import HASH, STATE, Head, head_of
from linnet.places.multicast.numbering import Standing

_COUNTERS = "place counters"
_SPANS = "place spans"
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Standing).decode


class New(Struct, frozen=True, gc=False):
    """It was stored."""

    row: Row
    whole: bool
    """Whether its message is complete now."""


class Same(Struct, frozen=True, gc=False):
    """It was there already."""

    row: Row


class Conflict(Struct, frozen=True, gc=False):
    """It was not stored, since it does not fit what is there."""

    reason: Reason
    """`EQUIVOCATION`: one device said two things under one number, in one term, and `held` and `came`
    prove it. `IN_USE`: another term or device has this number, so the line must be cut first.
    `MALFORMED`: it overlaps other pieces of its message. `TOO_MANY`: too many gaps are open."""
    came: EventId
    held: EventId | None = None


Stored = New | Same | Conflict


class Fragments:
    """What this node holds of one place."""

    def __init__(self, place: TopicId, log: EventLog, cells: Cells) -> None:
        self.place = place
        self._log = log
        self._cells = cells
        self._rows = Rows(place, cells)
        self._numbers = Numbers(place, cells)
        self._orphans = f"place orphan {place.hex()}"
        self.state = StateIndex(place, cells)
        """The messages that change state, from the last verified hash on."""
        self._latest_event: EventId | None = None
        self._latest: Verified | None = None
        """What was stored last is read right away, by whoever puts messages together."""
        self._unreadable: dict[int, Row] = {}
        kept = cells.get(_COUNTERS, place)
        self._standing = Standing() if kept is None else _decode(kept)

    # How far it goes.

    @property
    def standing(self) -> Standing:
        """The highest numbers of the line: what the voice goes on from."""
        return self._standing

    @property
    def upto(self) -> int:
        """Everything below this fragment was seen, or is not for us."""
        return self._numbers.upto

    @property
    def next(self) -> int:
        """The number after the highest that was seen."""
        return self._numbers.last + 1

    def missing(self, most: int, below: int | None = None) -> list[Range]:
        """Gaps, lowest first: below the highest number, or below one that somebody told."""
        return self._numbers.missing(max(below or 0, self._numbers.last + 1), most)

    def seen(self, fragment: int) -> bool:
        """Whether a number was seen, be it held or not."""
        return self._numbers.has(fragment)

    def pass_over(self, first: int, last: int) -> bool:
        """Count numbers as seen that are not for us: before our entry, or denied. False: too many gaps."""
        if first > last or not self._numbers.has_room(first, last):
            return first > last
        self._numbers.add(first, last)
        return True

    # What is held.

    def get(self, fragment: int) -> Row | None:
        """The fragment of this number."""
        return self._rows.get(fragment)

    def get_at(self, message: int, offset: int) -> Row | None:
        """The fragment of a message that begins at this byte."""
        return self._rows.at(message, offset)

    def message(self, message: int, offset: int = 0) -> Iterator[Row]:
        """The pieces of a message in order, from this one on, up to the first that is missing."""
        row = self._rows.at(message, offset)
        while row is not None:
            yield row
            row = None if row.is_last else self._rows.at(message, row.end)

    def pieces(self, message: int) -> list[Row]:
        """All pieces of a message that are held, in order, whatever is missing between them."""
        spans = self._spans(message)
        begins = [0] if spans is None else spans.begins
        found = [row for begin in begins for row in self.message(message, begin)]
        if spans is not None and spans.total is not None:
            end = self._rows.at(message, spans.total)  # a last piece without bytes touches no span
            if end is not None and (not found or found[-1].fragment != end.fragment):
                found.append(end)
        return found

    def held_from_start(self, message: int) -> int:
        """Bytes of a message that are held from its beginning on without a gap, if it is not whole."""
        spans = self._spans(message)
        return spans.ends[0] if spans is not None and spans.begins and not spans.begins[0] else 0

    def is_whole(self, message: int) -> bool:
        """Whether all of a message is held."""
        return self._spans(message) is None and self._rows.at(message, 0) is not None

    def unit(self, row: Row) -> Unverified | None:
        """The fragment as it came, for whoever wants it again; None if it was evicted."""
        entry = self._entry(row)
        if entry is None:
            self._unreadable[row.fragment] = row
            return None
        return decode_unit(entry.raw)

    def take_unreadable(self) -> list[Row]:
        """What is in the line, and was found not to be in the log any more: others may have it."""
        found, self._unreadable = self._unreadable, {}
        return [row for row in found.values() if self._rows.get(row.fragment) == row]

    def verified(self, row: Row) -> Verified | None:
        """The same for ourselves: it was checked before it was written."""
        if row.event == self._latest_event:
            return self._latest
        unit = self.unit(row)
        return None if unit is None else recall_unit(unit)

    # What comes and goes.

    def store(self, verified: Verified, head: Head, now: float) -> Stored:
        """Take a checked fragment that belongs to the line. The sender's card is the card book's to keep."""
        event = verified.head
        if len(verified.events) != 1 or verified.unit.topic != self.place:
            raise InvalidEvent(Reason.MALFORMED, "a fragment is alone in its unit, and of this place")
        length = len(verified.events[0].body) - head.overhead
        held = self._rows.get(head.fragment)
        if held is not None and held.event == event:
            if self._entry(held) is not None:
                return Same(held)
            # Its bytes were damaged on our disk, or let go: they are here again, for whoever missed them.
            self._append(verified, now)
            self._latest_event, self._latest = event, verified
            return New(held, self.is_whole(held.message))
        if held is None:
            held = self._rows.at(head.message, head.offset)
        if held is not None:
            return Conflict(self._why(held, verified, head), event, held.event)
        spans = self._spans(head.message)
        is_new = spans is None
        if spans is None:
            if head.offset and self._rows.at(head.message, 0) is not None:
                return Conflict(Reason.MALFORMED, event)  # it is whole: nothing can be added
            spans = Spans([], [])
        if length < 0 or not spans.fits(head.offset, length, head.is_last):
            return Conflict(Reason.MALFORMED, event)
        if not length and not head.is_last:
            return Conflict(Reason.MALFORMED, event)
        if len(spans.begins) >= MOST_SPANS or not self._numbers.has_room(head.fragment, head.fragment):
            return Conflict(Reason.TOO_MANY, event)
        position = self._append(verified, now)
        self._latest_event, self._latest = event, verified
        return self._enter(make_row(head, event, position, length), spans, is_new)

    def mark(self, message: int, marks: Mark) -> None:
        """Note what became of a message's modifiers; `HASH` makes it the base of what is kept for others."""
        first = self._rows.at(message, 0)
        if first is not None:
            self._rows.update(first._replace(marks=first.marks | int(marks)))
        self.state.mark(message, marks)

    def orphan(self, after: int, term: int) -> list[Row]:
        """The line was cut behind a fragment: take what is beyond it, of terms up to this one, out of it.

        Their bytes stay in the log. Gives what was taken out, in order.
        """
        beyond = [
            number
            for first, last in self._numbers.ranges
            if last > after
            for number in range(max(first, after + 1), last + 1)
        ]
        rows = {number: self._rows.get(number) for number in beyond}
        gone = [row for row in rows.values() if row is not None and row.term <= term]
        for message in dict.fromkeys(row.message for row in gone):
            self._reopen(message, after, term)
        for row in gone:
            self._rows.delete(row)
            self._cells.put(self._orphans, _orphan_key(row), encode_row(row))
        self._numbers.remove([number for number, row in rows.items() if row is None or row.term <= term])
        self._recount(gone)
        return gone

    def orphans(self) -> list[Row]:
        """What was taken out of the line, in the order of terms and numbers."""
        return [
            decode_row(int.from_bytes(key[8:16], "big"), raw) for key, raw in self._cells.scan(self._orphans)
        ]

    def forget_orphan(self, row: Row) -> None:
        """It was said again, or is nobody's concern any more."""
        self._cells.delete(self._orphans, _orphan_key(row))

    def adopt(self, row: Row, now: float) -> Stored:
        """Take an orphan into the line again, since another opening counts now."""
        verified = self.verified(row)
        if verified is None:
            return Conflict(Reason.NOT_HELD, row.event)
        self.forget_orphan(row)
        return self.store(verified, head_of(verified.events[0]), now)

    # For retention.

    def moved(self, row: Row, position: int) -> None:
        """The log has it elsewhere now."""
        self._rows.update(row._replace(position=position))

    def evicted(self, row: Row) -> None:
        """The log does not have it any more; its number stays seen."""
        self._latest_event = self._latest = None
        spans = self._spans(row.message)
        if spans is None:
            spans = Spans([], [])
            for piece in self.message(row.message):
                spans.add(piece.offset, piece.length, piece.is_last)
        spans.remove(row.offset, row.end)
        self._rows.delete(row)
        self._set_spans(row.message, spans)

    # Inside.

    def _entry(self, row: Row) -> Entry | None:
        if row.position:
            found = self._log.read(self.place, row.position - 1, 1)
            if found and found[0][1].head == row.event:
                return found[0][1]
        return self._log.get(row.event)

    def _append(self, verified: Verified, now: float) -> int:
        unit = verified.unit
        entry = Entry(
            self.place, unit.author, unit.device, unit.seq, 1, verified.head, now, encode_unit(unit)
        )
        return self._log.append(entry) or 0

    def _enter(self, row: Row, spans: Spans, is_new: bool) -> New:
        self._rows.put(row)
        self._numbers.add(row.fragment, row.fragment)
        spans.add(row.offset, row.length, row.is_last)
        if not (is_new and spans.is_whole):  # most are whole in one piece
            self._set_spans(row.message, spans)
        if row.flags & (STATE | HASH) and row.is_first:
            self.state.add(row.message, row.flags & STATE != 0)
        self._count(row)
        return New(row, spans.is_whole)

    def _count(self, row: Row) -> None:
        was = self._standing
        latest = row.fragment > was.fragment
        changes_state = row.flags & STATE != 0
        self._set_standing(
            Standing(
                max(was.fragment, row.fragment),
                max(was.message, row.message),
                max(was.generation, row.next_generation),
                max(was.term, row.term),
                max(was.state, row.message) if changes_state else was.state,
                row.event if latest else was.head,
            )
        )

    def _recount(self, gone: list[Row]) -> None:
        """The counters of a line that became shorter, from what is left of it."""
        last = self._rows.get(self._numbers.last) if self._numbers.last >= 0 else None
        before = [row.message for row in gone]
        highest = self._standing.message
        while highest and highest >= min(before, default=highest + 1) and self._rows.at(highest, 0) is None:
            highest -= 1
        state = self._last_state(highest)
        if last is None:
            standing = Standing(self._numbers.last, highest, state=state)  # the opening tells the rest
        else:
            generation = last.next_generation
            standing = Standing(self._numbers.last, highest, generation, last.term, state, last.event)
        self._set_standing(standing)
        self.state.cut(highest)

    def _last_state(self, most: int) -> int:
        """The last message of the line up to this one that changes state; 0: none is held."""
        known = self.state.highest(most)
        if known is not None:
            return known
        # The index does not go back so far: before 0.2 it knew nothing before the last hash.
        lowest = self.state.lowest
        for message in range(most if lowest is None else min(most, lowest), 0, -1):
            first = self._rows.at(message, 0)
            if first is not None and first.flags & STATE:
                return message
        return 0

    def _set_standing(self, standing: Standing) -> None:
        if standing != self._standing:
            self._standing = standing
            self._cells.put(_COUNTERS, self.place, _encode(standing))

    def _why(self, held: Row, verified: Verified, head: Head) -> Reason:
        """Why two fragments cannot both be in the line."""
        other = self.unit(held)
        unit = verified.unit
        if other is None or held.term != head.term:
            return Reason.IN_USE
        same = (other.author, other.device) == (unit.author, unit.device)
        return Reason.EQUIVOCATION if same else Reason.IN_USE

    def _spans(self, message: int) -> Spans | None:
        """What is held of a message that has gaps; None: nothing is, or all of it."""
        raw = self._cells.get(_SPANS, self.place + message.to_bytes(8, "big"))
        return None if raw is None else decode_spans(raw)

    def _set_spans(self, message: int, spans: Spans) -> None:
        key = self.place + message.to_bytes(8, "big")
        if spans.is_whole or (not spans.begins and spans.total is None):
            if self._cells.get(_SPANS, key) is not None:
                self._cells.delete(_SPANS, key)
        else:
            self._cells.put(_SPANS, key, encode_spans(spans))

    def _reopen(self, message: int, after: int, term: int) -> None:
        """What is left of a message when the line is cut."""
        spans = Spans([], [])
        for row in self.pieces(message):
            if row.fragment <= after or row.term > term:
                spans.add(row.offset, row.length, row.is_last)
        self._set_spans(message, spans)


def _orphan_key(row: Row) -> bytes:
    return row.term.to_bytes(8, "big") + row.fragment.to_bytes(8, "big") + row.event
