"""The fragments of one place: their bytes in the log, their rows and indexes in cells.

Toth 2013, section 5.1: a fragment is found by its number, and by its message and offset. A received fragment
is never changed and never stored twice. All that is needed at the start is in a few cells: a large place is
not read through. A body of any size goes through here piece by piece.

Beside the rows of fragments there are three indexes. The numbers that were seen are kept as ranges, which
show the gaps. A number stays seen when its fragment is evicted, and counts as seen if we may not see it. The
bytes held of an unfinished message are kept as sorted spans. And the messages that change state or carry its
hash are kept, those since the last verified hash and some before: a cut may take the hash itself out of the
line, and then the voice has to name the last change of state. By the distance to that message others know
where the next change belongs.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from enum import IntFlag
from struct import Struct as Packing
from typing import NamedTuple

import msgspec
from msgspec import Struct

from linnet.core.errors import InvalidEvent
from linnet.core.ids import EventId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells, Entry, EventLog
from linnet.delivery.chain import Range
from linnet.event.event import Unverified, Verified
from linnet.event.signing import decode_unit, encode_unit, recall_unit
from linnet.places.multicast.fragmentation import FIRST, HASH, LAST, STATE, Head, Standing

_FRAGMENTS = "place fragment"
_MESSAGES = "place message"
_packing = Packing(">32sQQQQQIBB")
_number = Packing(">Q")
_pair = Packing(">QQ")
MOST_RANGES = 65_536
"""The most separate ranges; a few megabytes. A fragment that would make more waits for the gaps before it."""
MOST_SPANS = 65_536
"""The most spans of one message: with pieces of 60 KiB it would take holes in eight gigabytes."""
_STATE = 128
"""A bit in a cell, beside the marks: the message changes state."""
BEFORE = 4096
"""The fewest messages before the last verified hash that stay known: as many as `StateOrder` can undo."""
_COUNTERS = "place counters"
_SPANS = "place spans"
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Standing).decode


class Mark(IntFlag):
    """What was done with a message's modifiers here (Toth 2013, table 5.1, `psyc_flags`)."""

    APPLIED = 1
    """The modifiers were applied to the state; this may be later than they came."""
    HASH = 2
    """The hash of the message was compared with our state and fits."""
    CHANGE = 4
    """The message announces a change of membership."""


_HASH = int(Mark.HASH)


class Row(NamedTuple):
    """One fragment of the line, without its bytes."""

    fragment: int
    event: EventId
    position: int
    """The position in the log when the fragment was stored; 0: not known."""
    term: int
    message: int
    offset: int
    generation: int
    length: int
    """The bytes of the message in it, without what encryption adds."""
    flags: int
    marks: int

    @property
    def is_first(self) -> bool:
        """Whether the message begins here."""
        return self.flags & FIRST != 0

    @property
    def is_last(self) -> bool:
        """Whether the message ends here."""
        return self.flags & LAST != 0

    @property
    def end(self) -> int:
        """The offset of the next piece."""
        return self.offset + self.length

    @property
    def next_generation(self) -> int:
        """The generation after this fragment, as far as the fragment tells."""
        leaves = self.marks & _CHANGE != 0 and not self.flags & _JOINS
        return self.generation + leaves


_CHANGE = int(Mark.CHANGE)
_JOINS = 128
"""A bit in a row's flags: the change that the fragment announces is a join."""


def make_row(head: Head, event: EventId, position: int, length: int) -> Row:
    """Return the row of a fragment that was just stored."""
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
    """Return a row for a cell, without its number, which is in the key."""
    return _packing.pack(*row[1:])


def decode_row(fragment: int, raw: bytes) -> Row:
    """Return a row from a cell of our own."""
    return Row(fragment, *_packing.unpack(raw))


class Rows:
    """The rows of one place, by their number and by message and offset."""

    def __init__(self, place: TopicId, cells: Cells) -> None:
        self._place = place
        self._cells = cells

    def get(self, fragment: int) -> Row | None:
        """Return the row of this number; None if there is none."""
        raw = self._cells.get(_FRAGMENTS, self._place + _number.pack(fragment))
        return None if raw is None else decode_row(fragment, raw)

    def at(self, message: int, offset: int) -> Row | None:
        """Return the row of a message's piece that begins at this offset; None if there is none."""
        raw = self._cells.get(_MESSAGES, self._place + _pair.pack(message, offset))
        return None if raw is None else self.get(_number.unpack(raw)[0])

    def put(self, row: Row) -> None:
        """Write a new row."""
        self._cells.put(_FRAGMENTS, self._place + _number.pack(row.fragment), encode_row(row))
        key = self._place + _pair.pack(row.message, row.offset)
        self._cells.put(_MESSAGES, key, _number.pack(row.fragment))

    def update(self, row: Row) -> None:
        """Write a row again whose message and offset are unchanged."""
        self._cells.put(_FRAGMENTS, self._place + _number.pack(row.fragment), encode_row(row))

    def delete(self, row: Row) -> None:
        """Delete a row."""
        self._cells.delete(_FRAGMENTS, self._place + _number.pack(row.fragment))
        self._cells.delete(_MESSAGES, self._place + _pair.pack(row.message, row.offset))


class Numbers:
    """The numbers seen in one place, as ranges; one cell each, so that a new number changes one or two."""

    def __init__(self, place: TopicId, cells: Cells, most: int = MOST_RANGES) -> None:
        self._cells = cells
        self._most = most
        self._space = f"place numbers {place.hex()}"
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        for first, last in cells.scan(self._space):
            self._firsts.append(_number.unpack(first)[0])
            self._lasts.append(_number.unpack(last)[0])

    @property
    def ranges(self) -> list[Range]:
        """The ranges of numbers seen, lowest first."""
        return list(zip(self._firsts, self._lasts, strict=True))

    @property
    def last(self) -> int:
        """The highest number seen; -1: none."""
        return self._lasts[-1] if self._lasts else -1

    @property
    def upto(self) -> int:
        """The first number that was not seen."""
        return self._lasts[0] + 1 if self._firsts and self._firsts[0] == 0 else 0

    def has(self, number: int) -> bool:
        """Return whether a number was seen."""
        at = bisect_right(self._firsts, number) - 1
        return at >= 0 and number <= self._lasts[at]

    def before(self, number: int) -> int:
        """Return the highest number seen that is not above this one; -1: none."""
        at = bisect_right(self._firsts, number) - 1
        return min(number, self._lasts[at]) if at >= 0 else -1

    def has_room(self, first: int, last: int) -> bool:
        """Return whether these numbers can be added without too many open ranges."""
        low, high = self._touching(first, last)
        return low < high or len(self._firsts) < self._most

    def add(self, first: int, last: int) -> None:
        """Count numbers as seen."""
        low, high = self._touching(first, last)
        if low < high:
            if self._firsts[low] <= first and last <= self._lasts[low]:
                return
            first, last = min(first, self._firsts[low]), max(last, self._lasts[high - 1])
        self._replace(low, high, [(first, last)])

    def missing(self, below: int, most: int) -> list[Range]:
        """Return the ranges of numbers below a bound that were not seen, lowest first, at most `most`."""
        holes: list[Range] = []
        at, index = 0, 0
        while at < below and len(holes) < most:
            first = self._firsts[index] if index < len(self._firsts) else below
            if first > at:
                holes.append((at, min(first, below) - 1))
            at = self._lasts[index] + 1 if index < len(self._lasts) else below
            index += 1
        return holes

    def remove(self, numbers: Sequence[int]) -> None:
        """Free these sorted numbers again: another term will use them."""
        if not numbers:
            return
        low = bisect_left(self._lasts, numbers[0])
        left: list[Range] = []
        at = 0
        for first, last in self.ranges[low:]:
            begin = first
            while at < len(numbers) and numbers[at] <= last:
                if begin < numbers[at]:
                    left.append((begin, numbers[at] - 1))
                begin = max(begin, numbers[at] + 1)
                at += 1
            if begin <= last:
                left.append((begin, last))
        self._replace(low, len(self._firsts), left)

    def _touching(self, first: int, last: int) -> tuple[int, int]:
        """Return the ranges that overlap or touch these numbers, by their places in the lists."""
        return bisect_left(self._lasts, first - 1), bisect_right(self._firsts, last + 1)

    def _replace(self, low: int, high: int, ranges: list[Range]) -> None:
        kept = {first: None for first, _ in ranges}
        for first in self._firsts[low:high]:
            if first not in kept:
                self._cells.delete(self._space, _number.pack(first))
        for first, last in ranges:
            self._cells.put(self._space, _number.pack(first), _number.pack(last))
        self._firsts[low:high] = [first for first, _ in ranges]
        self._lasts[low:high] = [last for _, last in ranges]


class Spans(Struct, array_like=True):
    """The spans of a message that are held, and where it ends if that is known. An end is exclusive."""

    begins: list[int]
    ends: list[int]
    total: int | None = None

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing."""
        return self.total is not None and self.begins == [0] and self.ends == [self.total]

    def fits(self, offset: int, length: int, last: bool) -> bool:
        """Return whether a piece can be part of the same message as those that are held."""
        end = offset + length
        if self.total is not None and (last or end > self.total or (not length and offset == self.total)):
            return False
        if last and self.ends and self.ends[-1] > end:
            return False
        at = bisect_right(self.begins, offset) - 1
        free_before = at < 0 or self.ends[at] <= offset
        free_behind = at + 1 >= len(self.begins) or end <= self.begins[at + 1]
        return free_before and free_behind

    def add(self, offset: int, length: int, last: bool) -> None:
        """Add a piece that `fits`."""
        end = offset + length
        if last:
            self.total = end
        if not length and (offset or not last):
            return
        low = bisect_left(self.ends, offset)
        high = bisect_right(self.begins, end)
        if low < high:
            offset, end = min(offset, self.begins[low]), max(end, self.ends[high - 1])
        self.begins[low:high] = [offset]
        self.ends[low:high] = [end]

    def remove(self, offset: int, end: int) -> None:
        """Remove a piece. Without any piece the end of the message is not known either."""
        at = bisect_right(self.begins, offset) - 1
        if at >= 0 and end <= self.ends[at]:
            begin, behind = self.begins[at], self.ends[at]
            left = [(begin, offset), (end, behind)]
            self.begins[at : at + 1] = [first for first, last in left if first < last]
            self.ends[at : at + 1] = [last for first, last in left if first < last]
        if end == self.total or not self.begins:
            self.total = None


_decode_spans = msgspec.msgpack.Decoder(Spans).decode


class StateIndex:
    """The state messages of one place, one cell each: all that are held from the lowest of them on."""

    def __init__(self, place: TopicId, cells: Cells) -> None:
        self._cells = cells
        self._space = f"place state index {place.hex()}"
        self._marks = {int.from_bytes(key, "big"): raw[0] for key, raw in cells.scan(self._space)}
        self.base = self._last_verified()
        """The last message whose hash was verified; 0: none."""

    def highest(self, most: int) -> int | None:
        """Return the last message up to `most` that changes state; None: it is not known here."""
        known = (number for number, marks in self._marks.items() if marks & _STATE and number <= most)
        return max(known, default=None)

    @property
    def lowest(self) -> int | None:
        """The message from which on all held state messages are known here; None: none is known."""
        return min(self._marks, default=None)

    def add(self, message: int, changes_state: bool) -> None:
        """Note that a message has begun that changes state or carries its hash."""
        # Before the hash there are no gaps in the known messages: one that is older than all of them stays
        # out.
        if message > self.base or message > min(self._marks, default=message):
            self._set(message, self._marks.get(message, 0) | (_STATE if changes_state else 0))

    def mark(self, message: int, marks: Mark) -> None:
        """Set marks of a message. A verified hash drops the messages long before it."""
        flags = int(marks)
        self._set(message, self._marks.get(message, 0) | flags)
        if flags & _HASH and message > self.base:
            self.base = message
            if len(self._marks) > 2 * BEFORE:
                before = sorted(number for number in self._marks if number < message)
                for number in before[:-BEFORE]:
                    self._delete(number)

    def cut(self, after: int) -> None:
        """Forget the messages after this one, which are no longer part of the line."""
        for number in [number for number in self._marks if number > after]:
            self._delete(number)
        self.base = self._last_verified()

    def _last_verified(self) -> int:
        return max((number for number, marks in self._marks.items() if marks & _HASH), default=0)

    def _set(self, message: int, marks: int) -> None:
        self._marks[message] = marks
        self._cells.put(self._space, message.to_bytes(8, "big"), bytes([marks]))

    def _delete(self, message: int) -> None:
        del self._marks[message]
        self._cells.delete(self._space, message.to_bytes(8, "big"))


class New(Struct, frozen=True, gc=False):
    """The fragment was stored."""

    row: Row
    whole: bool
    """Whether its message is complete now."""


class Same(Struct, frozen=True, gc=False):
    """The fragment was there already."""

    row: Row


class Conflict(Struct, frozen=True, gc=False):
    """The fragment was not stored, since it does not fit the fragments that are held."""

    reason: Reason
    """`EQUIVOCATION`: one device signed two fragments with one number, in one term, as `held` and `came`
    prove. `IN_USE`: another term or device has this number, so the line must be cut first. `MALFORMED`: it
    overlaps other pieces of its message. `TOO_MANY`: too many gaps are open."""
    came: EventId
    held: EventId | None = None


Stored = New | Same | Conflict


class Fragments:
    """The fragments of one place that this node holds."""

    def __init__(self, place: TopicId, log: EventLog, cells: Cells) -> None:
        self.place = place
        self._log = log
        self._cells = cells
        self._rows = Rows(place, cells)
        self._numbers = Numbers(place, cells)
        self._orphans = f"place orphan {place.hex()}"
        self.state = StateIndex(place, cells)
        """The messages that change state, from the last verified hash on."""
        self._latest: Verified | None = None
        """The fragment stored last, kept since reassembly reads it right away."""
        self._unreadable: dict[int, Row] = {}
        kept = cells.get(_COUNTERS, place)
        self._standing = Standing() if kept is None else _decode(kept)

    # How far it goes.

    @property
    def standing(self) -> Standing:
        """The highest numbers of the line, from which the voice goes on."""
        return self._standing

    @property
    def upto(self) -> int:
        """The first fragment that was not seen; those that are not for us count as seen."""
        return self._numbers.upto

    @property
    def next(self) -> int:
        """The number after the highest that was seen."""
        return self._numbers.last + 1

    def missing(self, most: int) -> list[Range]:
        """Return the gaps below the highest number, lowest first."""
        return self._numbers.missing(self._numbers.last + 1, most)

    def pass_over(self, first: int, last: int) -> bool:
        """Count numbers as seen that are not for us: before our entry, or denied. False: too many gaps."""
        if first > last or not self._numbers.has_room(first, last):
            return first > last
        self._numbers.add(first, last)
        return True

    # What is held.

    def get(self, fragment: int) -> Row | None:
        """Return the fragment of this number; None if it is not held."""
        return self._rows.get(fragment)

    def get_at(self, message: int, offset: int) -> Row | None:
        """Return the fragment of a message that begins at this byte; None if it is not held."""
        return self._rows.at(message, offset)

    def message(self, message: int, offset: int = 0) -> Iterator[Row]:
        """Yield the pieces of a message in order, from this offset on, up to the first that is missing."""
        row = self._rows.at(message, offset)
        while row is not None:
            yield row
            row = None if row.is_last else self._rows.at(message, row.end)

    def pieces(self, message: int) -> list[Row]:
        """Return all held pieces of a message in order, whatever is missing between them."""
        spans = self._spans(message)
        begins = [0] if spans is None else spans.begins
        found = [row for begin in begins for row in self.message(message, begin)]
        if spans is not None and spans.total is not None:
            end = self._rows.at(message, spans.total)  # a last piece without bytes touches no span
            if end is not None and (not found or found[-1].fragment != end.fragment):
                found.append(end)
        return found

    def held_from_start(self, message: int) -> int:
        """Return the bytes of an incomplete message that are held from its beginning on without a gap."""
        spans = self._spans(message)
        return spans.ends[0] if spans is not None and spans.begins and not spans.begins[0] else 0

    def is_whole(self, message: int) -> bool:
        """Return whether all of a message is held."""
        return self._spans(message) is None and self._rows.at(message, 0) is not None

    def unit(self, row: Row) -> Unverified | None:
        """Return the stored fragment, to be sent again; None if it was evicted."""
        entry = self._entry(row)
        if entry is None:
            self._unreadable[row.fragment] = row
            return None
        return decode_unit(entry.raw)

    def take_unreadable(self) -> list[Row]:
        """Return rows of the line whose bytes were found missing in the log, once: peers may have them."""
        found, self._unreadable = self._unreadable, {}
        return [row for row in found.values() if self._rows.get(row.fragment) == row]

    def verified(self, row: Row) -> Verified | None:
        """Return the stored fragment for our own use: it was checked before it was stored."""
        if self._latest is not None and row.event == self._latest.head:
            return self._latest
        unit = self.unit(row)
        return None if unit is None else recall_unit(unit)

    # What comes and goes.

    def store(self, verified: Verified, head: Head, now: float) -> Stored:
        """Take a checked fragment that belongs to the line. The card book keeps the sender's card."""
        event = verified.head
        if len(verified.events) != 1 or verified.unit.topic != self.place:
            raise InvalidEvent(Reason.MALFORMED, "a fragment is alone in its unit, and of this place")
        length = len(verified.events[0].body) - head.overhead
        held = self._rows.get(head.fragment)
        if held is not None and held.event == event:
            if self._entry(held) is not None:
                return Same(held)
            # The bytes were damaged on our disk, or evicted: they are here again, for readers that missed
            # them.
            self._append(verified, now)
            self._latest = verified
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
        self._latest = verified
        return self._enter(make_row(head, event, position, length), spans, is_new)

    def mark(self, message: int, marks: Mark) -> None:
        """Note what was done with a message's modifiers; `HASH` makes it the base of the state index."""
        first = self._rows.at(message, 0)
        if first is not None:
            self._rows.update(first._replace(marks=first.marks | int(marks)))
        self.state.mark(message, marks)

    def orphan(self, after: int, term: int) -> list[Row]:
        """Take the fragments after a cut, of terms up to this one, out of the line.

        Their bytes stay in the log. Returns their rows, in order.
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
        """Return the rows that were taken out of the line, in the order of terms and numbers."""
        return [
            decode_row(int.from_bytes(key[8:16], "big"), raw) for key, raw in self._cells.scan(self._orphans)
        ]

    def forget_orphan(self, row: Row) -> None:
        """Forget an orphan that was said again, or that nobody needs any more."""
        self._cells.delete(self._orphans, _orphan_key(row))

    # For retention.

    def moved(self, row: Row, position: int) -> None:
        """Note the fragment's new position in the log."""
        self._rows.update(row._replace(position=position))

    def evicted(self, row: Row) -> None:
        """Delete the row of a fragment that the log evicted; its number stays seen."""
        self._latest = None
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
        """Set the counters after a cut, from what is left of the line."""
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
        """Return the last message of the line up to this one that changes state; 0: none is held."""
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
        """Return why two fragments cannot both be in the line."""
        other = self.unit(held)
        unit = verified.unit
        if other is None or held.term != head.term:
            return Reason.IN_USE
        same = (other.author, other.device) == (unit.author, unit.device)
        return Reason.EQUIVOCATION if same else Reason.IN_USE

    def _spans(self, message: int) -> Spans | None:
        """Return the held spans of a message that has gaps; None: nothing is held, or all of it."""
        raw = self._cells.get(_SPANS, self.place + message.to_bytes(8, "big"))
        return None if raw is None else _decode_spans(raw)

    def _set_spans(self, message: int, spans: Spans) -> None:
        key = self.place + message.to_bytes(8, "big")
        if spans.is_whole or (not spans.begins and spans.total is None):
            if self._cells.get(_SPANS, key) is not None:
                self._cells.delete(_SPANS, key)
        else:
            self._cells.put(_SPANS, key, _encode(spans))

    def _reopen(self, message: int, after: int, term: int) -> None:
        """Set the spans of a message to what a cut leaves of it."""
        spans = Spans([], [])
        for row in self.pieces(message):
            if row.fragment <= after or row.term > term:
                spans.add(row.offset, row.length, row.is_last)
        self._set_spans(message, spans)


def _orphan_key(row: Row) -> bytes:
    return row.term.to_bytes(8, "big") + row.fragment.to_bytes(8, "big") + row.event
