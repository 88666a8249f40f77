"""Joins the fragments of several messages under way into steps for the layer above.

A message is reported in three sorts of steps (Toth 2013, section 4.6): its beginning, with its method and all
of its modifiers; its body piece by piece; its end. It begins as soon as the modifiers are complete, however
long its body is. Pieces that came too early are not held here: they are in the store, and are read again when
their turn has come, so a body of any size passes through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from msgspec import Struct

from linnet.core.errors import RemoteError
from linnet.core.reasons import Reason
from linnet.event.event import Event
from linnet.places.channel.fragment_store import Fragments, Row
from linnet.places.channel.packet import (
    LARGEST_HEADER,
    Header,
    Ignored,
    Modifier,
    Packet,
    encode_header,
    parse_section,
    read_header,
)
from linnet.places.config import PlacesConfig
from linnet.places.multicast.fragmentation import KEYS, SEALED

MOST_OPEN = 4096
"""The most messages under way at once; each costs a few hundred bytes."""
HELD_SECTIONS = 4
"""The most held bytes of messages that did not begin yet, as a multiple of `modifier_bytes`. Past it, a
message is read again from the store when more of it comes."""
TOLD_AT_ONCE = 16
"""The most pieces of a body that are reported when one comes: after a long body waited for its beginning, or
was under way before a restart, the rest is in the store for those who want it."""


class Began(Struct, frozen=True, gc=False):
    """The modifiers of a message are complete: its first step, reported once."""

    message: int
    method: str
    modifiers: tuple[Modifier, ...]
    header: Header
    ignored: tuple[Ignored, ...] = ()


class Piece(Struct, frozen=True, gc=False):
    """A part of the body, never empty; offsets count from the beginning of the body."""

    message: int
    offset: int
    data: bytes


class More(Struct, frozen=True, gc=False):
    """More of the body is in the store, and is not reported here."""

    message: int


class Finished(Struct, frozen=True, gc=False):
    """All of the message was reported: its last step, reported once."""

    message: int
    length: int
    """The bytes of the body."""


class Broken(Struct, frozen=True, gc=False):
    """Nothing more will come of this message, and its earlier steps must not be used."""

    message: int
    reason: Reason
    detail: str = ""


Step: TypeAlias = Began | Piece | More | Finished | Broken

OpenPiece: TypeAlias = Callable[[Event, Row], bytes | None]
"""Returns the plain bytes of a piece; None while its key is missing. `RemoteError` if it is false."""


def open_plain(event: Event, row: Row) -> bytes | None:
    """Return the body as it is, for places that are not encrypted."""
    return event.body


class _Under:
    """How much of one message was reported."""

    __slots__ = ("at", "body", "header", "section")

    def __init__(self) -> None:
        self.at = 0
        """The offset of the next piece to read."""
        self.section = bytearray()
        """The bytes so far of header and modifiers; empty once the message began."""
        self.header: tuple[Header, int] | None = None
        self.body: int | None = None
        """The bytes of the body that were reported; None: the message did not begin."""


class Reassembly:
    """The messages of one place that are under way, reported as their pieces arrive."""

    def __init__(
        self,
        fragments: Fragments,
        limits: PlacesConfig | None = None,
        opened: OpenPiece = open_plain,
        most_open: int = MOST_OPEN,
    ) -> None:
        self._fragments = fragments
        self._limits = limits or PlacesConfig()
        self._opened = opened
        self._most_open = most_open
        self._under: dict[int, _Under] = {}
        self._broken: dict[int, None] = {}

    def __len__(self) -> int:
        return len(self._under)

    @property
    def held_bytes(self) -> int:
        """The bytes of unfinished modifiers: the only part of messages held in memory."""
        return sum(len(under.section) for under in self._under.values())

    def stored(self, row: Row) -> Iterator[Step]:
        """Yield the steps that a newly stored fragment makes possible. To be read to its end.

        A few pieces at most: a long body that waited for its beginning is never in memory at once.
        """
        message = row.message
        under = self._under.get(message)
        if message in self._broken or row.flags & KEYS:
            return
        if under is None:
            if len(self._under) >= self._most_open:
                yield self._break(message, Reason.TOO_MANY, f"{self._most_open} messages are under way")
                return
            under = self._under[message] = _Under()
        yield from self._go_on(message, under, False)

    def told(self, row: Row) -> list[Step]:
        """Return the same steps at once; fast for messages in one piece, which most are."""
        is_known = row.message in self._broken or row.message in self._under
        if not row.is_first or not row.is_last or is_known or row.flags & KEYS:
            return list(self.stored(row))
        try:
            data = self.read(row)
            if data is None:
                return list(self.stored(row))  # until its key comes
            found = read_header(data[:LARGEST_HEADER], self._limits)
            end = 0 if found is None else found[1] + found[0].modifier_bytes
            if found is None or len(data) < end:
                raise RemoteError(Reason.MALFORMED, f"it ends at {row.end}, before its method")
            header, begin = found
            packet = parse_section(data[begin:end], self._limits)
        except RemoteError as error:
            return [self._break(row.message, error.reason, error.detail)]
        steps: list[Step] = [_began(row, packet, header)]
        if len(data) > end:
            steps.append(Piece(row.message, 0, data[end:]))
        return [*steps, Finished(row.message, len(data) - end)]

    def resume(self, message: int) -> Iterator[Step]:
        """Go on with a message whose key has arrived, or from its beginning after a restart."""
        under = self._under.setdefault(message, _Under())
        yield from self._go_on(message, under, False)

    def historic(self, message: int, offset: int = 0) -> Iterator[Step]:
        """Yield a stored message from its beginning, as far as it is held, whatever its live steps are.

        With an offset: its beginning, then its body from that byte on.
        """
        for step in self._go_on(message, _Under(), True):
            if offset and isinstance(step, Piece | Finished):
                return
            yield step
            if offset and isinstance(step, Began):
                yield from self.go_on(step, offset)
                return

    def go_on(self, began: Began, offset: int) -> Iterator[Step]:
        """Yield the body of a stored message from a byte on, as far as it is held."""
        before = len(encode_header(began.header)) + began.header.modifier_bytes
        row = self._fragments.get_at(began.message, before + offset)
        if row is None:
            for row in self._fragments.message(began.message):
                if row.end > before + offset or row.is_last:
                    break
        if row is None or (row.end <= before + offset and not row.is_last):
            return
        under = _Under()
        under.at, under.body = row.offset, row.offset - before
        for step in self._go_on(began.message, under, True):
            skip = offset - step.offset if isinstance(step, Piece) else 0
            if isinstance(step, Piece) and skip > 0:
                if skip < len(step.data):
                    yield Piece(step.message, offset, step.data[skip:])
            else:
                yield step

    def cut(self, messages: list[int], reason: Reason = Reason.STALE) -> list[Broken]:
        """Break off messages that will not be finished: their term was cut, or the rest is not for us. Return
        the steps for those under way."""
        found = [message for message in messages if self._under.pop(message, None) is not None]
        for message in messages:
            self._broken.pop(message, None)  # its number may be used again
        return [Broken(message, reason) for message in found]

    def _go_on(self, message: int, under: _Under, historic: bool) -> Iterator[Step]:
        told = 0
        try:
            for row in self._fragments.message(message, under.at):
                if row.flags & KEYS:
                    return
                if told >= TOLD_AT_ONCE and under.body is not None and not historic:
                    if not self._pass_over(row, under):
                        break
                    if told == TOLD_AT_ONCE:
                        yield More(message)
                else:
                    data = self.read(row)
                    if data is None:
                        break
                    under.at = row.end
                    yield from self._feed(row, under, data)
                told += 1
                if row.is_last:
                    if under.body is None:
                        raise RemoteError(Reason.MALFORMED, f"it ends at {row.end}, before its method")
                    if not historic:
                        del self._under[message]
                    yield Finished(message, under.body)
        except RemoteError as error:
            if historic:
                yield Broken(message, error.reason, error.detail)
            else:
                yield self._break(message, error.reason, error.detail)
        self._let_go(under)

    def _pass_over(self, row: Row, under: _Under) -> bool:
        """Count a piece as reported; False: its key is missing. An unsealed piece is not read for that."""
        if under.body is None or (row.flags & SEALED and self.read(row) is None):
            return False
        under.at = row.end
        under.body += row.length
        return True

    def read(self, row: Row) -> bytes | None:
        """Return the plain bytes of a piece; None: it is not held, or its key is missing."""
        verified = self._fragments.verified(row)
        return None if verified is None else self._opened(verified.events[0], row)

    def _feed(self, row: Row, under: _Under, data: bytes) -> Iterator[Step]:
        if under.body is not None:
            yield from _piece(row.message, under, data)
            return
        under.section += data
        if under.header is None:
            under.header = read_header(bytes(under.section[:LARGEST_HEADER]), self._limits)
        if under.header is None:
            return
        header, begin = under.header
        end = begin + header.modifier_bytes
        if len(under.section) < end:
            return
        packet = parse_section(bytes(under.section[begin:end]), self._limits)
        rest = bytes(under.section[end:])
        under.section = bytearray()
        under.body = 0
        yield _began(row, packet, header)
        yield from _piece(row.message, under, rest)

    def _let_go(self, under: _Under) -> None:
        """Drop unfinished modifiers past the bound: the message is read from its beginning next time."""
        if under.section and self.held_bytes > HELD_SECTIONS * self._limits.modifier_bytes:
            under.at, under.header, under.section = 0, None, bytearray()

    def _break(self, message: int, reason: Reason, detail: str) -> Broken:
        self._under.pop(message, None)
        if len(self._broken) >= self._most_open:
            del self._broken[next(iter(self._broken))]
        self._broken[message] = None
        return Broken(message, reason, detail)


def _began(row: Row, packet: Packet, header: Header) -> Began:
    return Began(row.message, packet.method, packet.modifiers, header, packet.ignored)


def _piece(message: int, under: _Under, data: bytes) -> Iterator[Piece]:
    if data and under.body is not None:
        yield Piece(message, under.body, data)
        under.body += len(data)
