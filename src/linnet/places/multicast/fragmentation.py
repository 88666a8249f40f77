"""Fragments of messages: their clear heads, the cutting of messages into them, and their numbers.

The head has the fields that relays must read (docs/adr/0018-places.md). Toth 2013, section 3.4, has these
fields in a header of its own; here they are the event's `clear`, so that one signature covers them together
with the body.

Messages are cut into pieces while they are still being written. A piece leaves as soon as it is full, so the
first may leave long before the body ends. Open messages take turns piece by piece: a small one gets in
between the pieces of a large one.

The voice of a place numbers fragments, messages, generations and distances of state. The generation is read
when a fragment is sent, not when its message began: fragments after a removal are closed to the removed
guest, also the rest of a message that is under way (decision 0018).
"""

from __future__ import annotations

from enum import IntFlag
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta, Struct

from linnet.core.errors import InvalidEvent, Refused
from linnet.core.ids import AuthorId, Count, EventId, WireAuthorId, WireEventId
from linnet.core.limits import LARGEST_COUNT
from linnet.core.reasons import Reason
from linnet.event.event import Event

FRAGMENT = "fragment"
"""The event kind of fragments."""

PIECE_BYTES = 60 * 1024
"""The most bytes of a message in one fragment: with head, signature and card it stays below 64 KiB."""


SEALED_BYTES = 36
"""The bytes that encryption adds to each piece: `linnet.places.sealed.epoch_keys`."""
HELD_PIECES = 16
"""The pieces of one message that may wait to be taken; a faster writer has to wait."""
OPEN_MESSAGES = 256
"""The most messages open at once."""
FIRST_TERM = 1
"""The first term, which is opened after no fragment."""


class Flag(IntFlag):
    """The flags of a fragment."""

    FIRST = 1
    LAST = 2
    STATE = 4
    """The fragment's message changes state."""
    HASH = 8
    """The fragment's message carries the hash of the whole state."""
    OPENING = 16
    """The fragment opens a term."""
    KEYS = 32
    """The fragment's message brings keys to devices, each sealed to one; it is not for applications."""
    SEALED = 64
    """The fragment's body is ciphertext, for guests alone."""


# The same as plain numbers: looked at several times for each fragment, and enums are slow there.
FIRST, LAST, STATE, HASH, OPENING, KEYS, SEALED = (int(flag) for flag in Flag)
_NOT_KEYS = STATE | HASH | SEALED


class Change(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A change of membership that the message announces."""

    nym: WireAuthorId
    joins: bool
    effective_since: Count
    """The first message that is open to the new guest; 0 with a part."""
    roll: Annotated[bytes, Meta(min_length=32, max_length=32)] | None = None
    """The hash of all membership in force with this change, so that a newcomer may get that from any peer;
    None: the voice does not know all of it."""


class Cut(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """Where a term begins: after this fragment of the term before. Numbers go on from there."""

    term: Count
    fragment: Count
    message: Count
    head: WireEventId
    """The event id of that fragment."""


class Head(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The position of one fragment among all that is said in a place, and its flags."""

    term: Count
    fragment: Count
    """The number of the fragment, which grows by one from 0 on and so shows gaps."""
    message: Count
    """The number of the message, which grows by one from 1 on."""
    offset: Count
    """The bytes of the message before this piece."""
    generation: Count
    """The generation, which grows by one after every removal."""
    flags: Annotated[int, Meta(ge=0, le=127)]
    change: Change | None = None
    cut: Cut | None = None
    """The cut of an `OPENING`, except in the very first term."""

    @property
    def overhead(self) -> int:
        """The bytes of the body that are not of the message."""
        return SEALED_BYTES if self.flags & SEALED else 0

    @property
    def is_first(self) -> bool:
        """Whether the message begins here."""
        return self.flags & FIRST != 0

    @property
    def is_last(self) -> bool:
        """Whether the message ends here."""
        return self.flags & LAST != 0


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(Head)


def encode_head(head: Head) -> bytes:
    """Return a head as the bytes of `clear`."""
    return _encode(head)


def head_of(event: Event) -> Head:
    """Return the head of a checked event; `InvalidEvent` if it has none, or one that contradicts itself."""
    if event.kind != FRAGMENT or event.tail.clear is None or event.tail.key is not None:
        raise InvalidEvent(Reason.MALFORMED, "no fragment of a place")
    if event.seq is None:
        raise InvalidEvent(Reason.MALFORMED, "a fragment outside of its device's chain")
    if len(event.body) > PIECE_BYTES + 256:  # an encrypted piece is a little longer
        raise InvalidEvent(Reason.TOO_LARGE, f"a piece of {len(event.body)} bytes")
    try:
        head = _decoder.decode(event.tail.clear)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidEvent(Reason.MALFORMED, f"head: {error}") from error
    fault = _contradiction(head) or _misfit(head, len(event.body) - head.overhead)
    if fault is not None:
        raise InvalidEvent(Reason.MALFORMED, fault)
    return head


def _contradiction(head: Head) -> str | None:
    first = head.is_first
    whole = first and head.is_last
    if first != (head.offset == 0):
        return "an offset that does not fit the first fragment"
    if head.message == 0:
        return "messages are counted from 1"
    if head.fragment == 0 and not first:
        return "the first fragment of all begins no message"
    if head.flags & KEYS and (head.change is not None or head.flags & _NOT_KEYS):
        return "a message of keys that is something else, too"
    if head.change is not None and not whole:
        return "a change of membership in pieces"
    if head.change is not None and not head.change.joins and head.change.effective_since:
        return "a part that is effective since a message"
    if head.change is not None and head.change.effective_since > head.message:
        return "a join that is effective only after it is announced"
    if (head.flags & OPENING != 0) != (head.cut is not None or (head.fragment == 0 and first)):
        return "a term that opens without a cut, or a cut without an opening"
    if head.cut is not None and not first:
        return "a term that opens inside of a message"
    if head.cut is not None and head.message <= head.cut.message:
        return "a term that uses a message's number again"
    if head.cut is not None and (head.cut.term >= head.term or head.cut.fragment + 1 != head.fragment):
        return "a cut that is not right before this fragment"
    return None


def _misfit(head: Head, length: int) -> str | None:
    if length < 0:
        return "too short for a sealed piece"
    if not length and not head.is_last:
        return "a piece without bytes that is not the last"
    if head.offset + length > LARGEST_COUNT:
        return "a message longer than numbers go"
    return None


class Piece(NamedTuple):
    """Bytes of one message that fit into one fragment."""

    message: int
    """The number that the caller gave to `Fragmenter.open`."""
    offset: int
    data: bytes
    is_first: bool
    is_last: bool

    @property
    def flags(self) -> int:
        """The flags that the piece adds to the head."""
        return (FIRST if self.is_first else 0) | (LAST if self.is_last else 0)


class _Open:
    __slots__ = ("begun", "data", "finished", "flushed", "offset")

    def __init__(self) -> None:
        self.data = bytearray()
        self.offset = 0
        self.begun = False
        self.finished = False
        self.flushed = 0
        """Bytes at the front that leave even if they fill no piece."""


class Fragmenter:
    """Cuts the open messages into pieces, in turn."""

    def __init__(self, piece_bytes: int = PIECE_BYTES, held_pieces: int = HELD_PIECES) -> None:
        self._piece = piece_bytes
        self._most = piece_bytes * held_pieces
        self._open: dict[int, _Open] = {}

    def __len__(self) -> int:
        return len(self._open)

    def open(self, message: int) -> None:
        """Open a message under the caller's number; `Refused` if it, or too many, are open."""
        if message in self._open:
            raise Refused(Reason.IN_USE, f"message {message} is open already")
        if len(self._open) >= OPEN_MESSAGES:
            raise Refused(Reason.TOO_MANY, f"{OPEN_MESSAGES} messages are open")
        self._open[message] = _Open()

    def reopen(self, message: int, offset: int) -> None:
        """Open a message again after a restart, with this many bytes sent already."""
        self.open(message)
        self._open[message].offset = offset
        self._open[message].begun = True

    def room(self, message: int) -> int:
        """Return the bytes that this message can take before pieces have to be taken."""
        return self._most - len(self._writable(message).data)

    def feed(self, message: int, data: bytes) -> None:
        """Add to the body; `Refused` with ``queue_full`` if there is no room for the data."""
        entry = self._writable(message)
        if len(entry.data) + len(data) > self._most:
            raise Refused(Reason.QUEUE_FULL, f"message {message} has {len(entry.data)} bytes waiting")
        entry.data += data

    def flush(self, message: int) -> None:
        """Let the waiting bytes leave, though they fill no piece: the rest may take long."""
        entry = self._writable(message)
        entry.flushed = len(entry.data)

    def finish(self, message: int) -> None:
        """End the body here."""
        self._writable(message).finished = True

    def abandon(self, message: int) -> None:
        """Forget a message, as when the term ends."""
        self._open.pop(message, None)

    def take(self) -> Piece | None:
        """Return the next piece, of the message whose turn it is; None if nothing can leave now."""
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


class Standing(Struct, frozen=True, gc=False):
    """The highest numbers of a place, as its store knows; the defaults are an empty place."""

    fragment: int = -1
    """The last fragment."""
    message: int = 0
    """The highest message that began."""
    generation: int = 0
    """The generation of the next fragment."""
    term: int = 0
    state: int = 0
    """The last message that changed state; 0: none."""
    head: EventId | None = None
    """The event of the last fragment."""


class Message(Struct, frozen=True, gc=False):
    """A message under way."""

    number: int
    flags: int
    delta: int | None = None
    """The distance to the last message that changed state; 0: state begins anew; None: no change of state."""
    change: Change | None = None


class Numbering:
    """The counters of a place while this device is its voice; they go on from those in the store."""

    def __init__(self, standing: Standing) -> None:
        self._next = standing.fragment + 1
        self._message = standing.message
        self._generation = standing.generation
        self._term = standing.term
        self._state = standing.state
        self._open: dict[int, Message] = {}
        self._opening = False
        self._cut: Cut | None = None

    @property
    def standing(self) -> Standing:
        """The highest numbers so far; without the event of the last fragment, which is not known here."""
        return Standing(self._next - 1, self._message, self._generation, self._term, self._state)

    @property
    def under_way(self) -> tuple[int, ...]:
        """The messages that began and have not ended."""
        return tuple(self._open)

    def open_term(self, last: Standing) -> tuple[int, ...]:
        """Begin the next term after this standing, opened by the next fragment.

        Returns the messages that were under way: they cannot go on, and are to be said again.
        """
        if last.fragment >= 0 and last.head is None:
            raise Refused(Reason.MISSING_DEPENDENCY, "a term begins behind a fragment that is known")
        if last.fragment < 0 and last.term:
            raise Refused(Reason.MISSING_DEPENDENCY, f"nothing is known of term {last.term}")
        left = self.under_way
        self._open.clear()
        self._next, self._message = last.fragment + 1, last.message
        self._generation, self._state = last.generation, last.state
        self._term = last.term + 1
        self._opening = True
        self._cut = None if last.head is None else Cut(last.term, last.fragment, last.message, last.head)
        return left

    def begin(self, *, state: bool = False, reset: bool = False, hashed: bool = False) -> Message:
        """Begin a message with the next number."""
        return self._begin(state, reset, hashed, None)

    def begin_keys(self) -> Message:
        """Begin a message that brings keys."""
        return self._begin(False, False, False, None, KEYS)

    def begin_join(self, nym: AuthorId, since: int | None = None) -> Message:
        """Begin the notice that a guest came in; `since` is the first message open to them, else this one.

        It carries the hash of the state, for the newcomer: so it is a state message, but changes nothing.
        """
        number = self._message + 1
        if since is not None and not 0 <= since <= number:
            raise Refused(Reason.NOT_ALLOWED, f"message {number} cannot open what is after it")
        return self._begin(True, False, True, Change(nym, True, number if since is None else since))

    def begin_part(self, nym: AuthorId) -> Message:
        """Begin the notice that a guest left: the generation grows after it."""
        return self._begin(False, False, False, Change(nym, False, 0))

    def _begin(
        self, state: bool, reset: bool, hashed: bool, change: Change | None, flags: int = 0
    ) -> Message:
        if not self._term:
            raise Refused(Reason.NOT_ALLOWED, "no term is open")
        if self._message >= LARGEST_COUNT or self._next >= LARGEST_COUNT:
            raise Refused(Reason.TOO_LARGE, "the numbers of this place are used up")
        self._message += 1
        delta = None
        flags |= HASH if hashed else 0
        if state or reset:
            flags |= STATE
            delta = 0 if reset or not self._state else self._message - self._state
            self._state = self._message
        message = Message(self._message, flags, delta, change)
        self._open[message.number] = message
        return message

    def reopen(self, number: int, flags: int) -> None:
        """Take up a message that began before we stopped; `Refused` if its term is over."""
        if self._opening or not self._term:
            raise Refused(Reason.STALE, f"message {number} was cut with its term: say it again")
        self._open[number] = Message(number, flags & (STATE | HASH))

    def head(self, number: int, piece: Piece, sealed: bool = False) -> Head:
        """Return the head of a piece that is sent now; call it once for each fragment, in their order."""
        message = self._open.get(number)
        if message is None:
            raise Refused(Reason.UNKNOWN, f"message {number} is not under way")
        if message.change is not None and not (piece.is_first and piece.is_last):
            raise Refused(Reason.TOO_LARGE, "a change of membership fits one fragment")
        if self._opening and not piece.is_first:
            raise Refused(Reason.NOT_ALLOWED, "a term opens with the beginning of a message")
        flags = message.flags | piece.flags | (OPENING if self._opening else 0)
        flags |= SEALED if sealed else 0
        head = Head(
            self._term,
            self._next,
            number,
            piece.offset,
            self._generation,
            flags,
            message.change,
            self._cut if self._opening else None,
        )
        self._sent(message, piece)
        return head

    def _sent(self, message: Message, piece: Piece) -> None:
        self._next += 1
        self._opening = False
        self._cut = None
        if piece.is_last:
            del self._open[message.number]
        if message.change is not None and not message.change.joins:
            self._generation += 1
