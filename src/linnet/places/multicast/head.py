"""The clear part of a fragment: what those who carry it must read (docs/adr/0018-places.md).

Toth 2013, section 3.4, has these fields in a header of its own; here they are the event's `clear`,
so that one signature covers them together with the body.
"""

from __future__ import annotations

from enum import IntFlag
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from linnet.core.errors import InvalidEvent
from linnet.core.ids import Count, WireAuthorId, WireEventId
from linnet.core.limits import LARGEST_COUNT
from linnet.core.reasons import Reason
from linnet.event.event import Event

FRAGMENT = "fragment"
"""The kind of such an event."""

PIECE_BYTES = 60 * 1024
"""Most bytes of a message in one fragment: with head, signature and card it stays below 64 KiB."""


SEALED_BYTES = 36
"""What encryption adds to each piece: `linnet.places.sealed.pieces`."""


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
