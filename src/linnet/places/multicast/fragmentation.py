"""Fragments of messages: their clear heads, how messages are cut into them, and their numbers.

The head is what those who carry a fragment must read (docs/adr/0018-places.md). Toth 2013, section 3.4, has
these fields in a header of its own; here they are the event's `clear`, so that one signature covers them
together with the body.

Messages are cut into pieces while they are still being written. A piece leaves as soon as it is full, so the
first may leave long before the body ends. Open messages take turns piece by piece: a small one gets in
between the pieces of a large one.

The voice of a place numbers fragments, messages, generations and distances of state. The generation is read
when a fragment is sent, not when its message began: what follows a removal is closed to whoever was removed,
also the rest of a message that is under way (decision 0018).
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
"""The kind of such an event."""

PIECE_BYTES = 60 * 1024
"""Most bytes of a message in one fragment: with head, signature and card it stays below 64 KiB."""


SEALED_BYTES = 36
"""What encryption adds to each piece: `linnet.places.sealed.fragment_crypto`."""
HELD_PIECES = 16
"""Pieces of one message that wait to be taken; whoever writes faster has to wait."""
OPEN_MESSAGES = 256
"""Messages that may be open at once."""
FIRST_TERM = 1
"""The term that is opened behind nothing."""


class Flag(IntFlag):
    """What a fragment is in its message."""

    FIRST = 1
    LAST = 2
    STATE = 4
    """Its message changes state."""
    HASH = 8
    """Its message carries the hash of the whole state."""
    OPENING = 16
    """It opens a term."""
    KEYS = 32
    """Its message tells keys to devices, each sealed to one; nothing of it is for applications."""
    SEALED = 64
    """Its body is ciphertext, for guests alone."""


# The same as plain numbers: looked at several times for each fragment, and enums are slow there.
FIRST, LAST, STATE, HASH, OPENING, KEYS, SEALED = (int(flag) for flag in Flag)
_NOT_KEYS = STATE | HASH | SEALED


class Change(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A change of membership that the message announces."""

    nym: WireAuthorId
    joins: bool
    effective_since: Count
    """The first message that is open to whoever joins; 0 with a part."""
    roll: Annotated[bytes, Meta(min_length=32, max_length=32)] | None = None
    """The hash of all membership that is in force with this change, so that a newcomer may be told that by
    anybody; None: who speaks does not know all of it."""


class Cut(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """Where a term begins: behind this fragment of the term before. Numbers go on from there."""

    term: Count
    fragment: Count
    message: Count
    head: WireEventId
    """The fragment itself, by the id of its event."""


class Head(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The place of one fragment in everything that is said in a place."""

    term: Count
    fragment: Count
    """Grows by one from fragment to fragment, from 0 on: what gaps are found by."""
    message: Count
    """Grows by one from message to message, from 1 on."""
    offset: Count
    """Bytes of the message before this piece."""
    generation: Count
    """Grows by one behind every removal."""
    flags: Annotated[int, Meta(ge=0, le=127)]
    change: Change | None = None
    cut: Cut | None = None
    """With `OPENING`, except in the very first term."""

    @property
    def overhead(self) -> int:
        """Bytes of the body that are not of the message."""
        return SEALED_BYTES if self.flags & SEALED else 0

    @property
    def is_first(self) -> bool:
        """Whether its message begins here."""
        return self.flags & FIRST != 0

    @property
    def is_last(self) -> bool:
        """Whether its message ends here."""
        return self.flags & LAST != 0


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(Head)


def encode_head(head: Head) -> bytes:
    """The bytes of `clear`."""
    return _encode(head)


def head_of(event: Event) -> Head:
    """The head of a checked event; `InvalidEvent` if it has none, or one that contradicts itself."""
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
    """As `Fragmenter.open` called it."""
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


class Fragmenter:
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


class Standing(Struct, frozen=True, gc=False):
    """How far the numbers of a place have come, as its store knows; the defaults are an empty place."""

    fragment: int = -1
    """The last one."""
    message: int = 0
    """The highest one that began."""
    generation: int = 0
    """Of the next fragment."""
    term: int = 0
    state: int = 0
    """The last message that changed state; 0: none."""
    head: EventId | None = None
    """The last fragment, by its event."""


class Message(Struct, frozen=True, gc=False):
    """A message under way."""

    number: int
    flags: int
    delta: int | None = None
    """To the message that changed state before; 0: state begins anew; None: it changes no state."""
    change: Change | None = None


class Numbering:
    """The counters of a place while this device is its voice; they go on from what the store has."""

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
        """How far it has come; without the event of the last fragment, which is not known here."""
        return Standing(self._next - 1, self._message, self._generation, self._term, self._state)

    @property
    def under_way(self) -> tuple[int, ...]:
        """Messages that began and have not ended."""
        return tuple(self._open)

    def open_term(self, last: Standing) -> tuple[int, ...]:
        """The next term begins behind this; the first fragment from now on opens it.

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
        """A message with the next number."""
        return self._begin(state, reset, hashed, None)

    def begin_keys(self) -> Message:
        """A message that tells keys."""
        return self._begin(False, False, False, None, KEYS)

    def begin_join(self, nym: AuthorId, since: int | None = None, *, hashed: bool = True) -> Message:
        """The notice that somebody came in; `since` is the first message open to them, else this one.

        With the hash of the state, for whoever is new: so it is a state message, if one that changes nothing.
        """
        number = self._message + 1
        if since is not None and not 0 <= since <= number:
            raise Refused(Reason.NOT_ALLOWED, f"message {number} cannot open what is after it")
        return self._begin(hashed, False, hashed, Change(nym, True, number if since is None else since))

    def begin_part(self, nym: AuthorId) -> Message:
        """The notice that somebody left: the generation grows behind it."""
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
        """A message that began before we stopped is under way again; `Refused` if its term is over."""
        if self._opening or not self._term:
            raise Refused(Reason.STALE, f"message {number} was cut with its term: say it again")
        self._open[number] = Message(number, flags & (STATE | HASH))

    def head(self, number: int, piece: Piece, sealed: bool = False) -> Head:
        """The head of a piece that is sent now; every one is for one fragment, in the order of the calls."""
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
