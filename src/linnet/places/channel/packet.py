"""The text form of PSYC: names, modifiers, the method, the body, and the header before it.

Names of methods and variables are keywords from the general to the specific, each behind an underscore:
``_message_public_shout`` is a ``_message_public``, and that is a ``_message``. Whoever does not know the
specific name can still make sense of the general one (Toth 2013, section 6.5: try and slice).

The text (the PSYC specification, "packet")::

    :_volume<TAB>100                    for this message only
    =_location_planet<TAB>Earth         stays, as part of the state
    =_picture 3<TAB>...                 by length: any bytes, line ends too
    =_location_continent                no value; with `=` the variable goes
    _notice_profile_location            the method: the only part that must be there
    whatever follows is the body

Routing header, length and the closing bar of the specification are left out, since fragments have
what they say (Toth 2013, section 4.1). The parser takes bytes as they come and never looks at one twice.

The header says how far the modifiers go, and where a message stands in the state. Toth 2013, section 4.1,
names its fields and leaves the layout open. Here::

    version u8 | flags u8 | modifier length u32 | [state delta u64] | [state hash, 32 bytes]

The length is that of everything in front of the body. With it the method is called as soon as the
modifiers are there, however long the body is.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from linnet.core.errors import Refused, RemoteError
from linnet.core.limits import LARGEST_COUNT
from linnet.core.reasons import Reason
from linnet.places.config import PlacesConfig

NAME_CHARS = 256
"""Longest name; what is tried for one name is bounded by it too."""

_NAME = re.compile(r"[0-9A-Za-z_]{1,256}", re.ASCII)
TRANSIENT = ":"
ASSIGN = "="
AUGMENT = "+"
DIMINISH = "-"
OPERATORS = (TRANSIENT, ASSIGN, AUGMENT, DIMINISH)

_OPERATORS: Final = b":=+-"
_RESERVED: Final = b"?!@"
_LF, _TAB, _SP = 10, 9, 32
_name = re.compile(rb"[0-9A-Za-z_]*").match
_digits = re.compile(rb"[0-9]*").match
_LENGTH_DIGITS = 10
VERSION = 1
HASH_BYTES = 32
LARGEST_HEADER = 6 + 8 + HASH_BYTES

_HAS_DELTA = 1
_HAS_HASH = 2
_fixed = struct.Struct(">BBI")
_delta = struct.Struct(">Q")


def is_name(text: str) -> bool:
    """Whether this may name a method or a variable (the PSYC specification: `kwchar`)."""
    return _NAME.fullmatch(text) is not None


def slices(name: str) -> tuple[str, ...]:
    """The name, and what is left when its last keyword goes, down to the empty name that covers all."""
    found = [name]
    while name:
        name = name[: max(name.rfind("_"), 0)]
        found.append(name)
    return tuple(found)


def covers(prefix: str, name: str) -> bool:
    """Whether `prefix` is among the slices of `name`: whole keywords, so `_a_b` does not cover `_a_bc`."""
    return not prefix or name == prefix or name.startswith(prefix + "_")


class Modifier(Struct, frozen=True, array_like=True, gc=False):
    """One operation on one variable."""

    operator: str
    name: str
    value: bytes

    @property
    def is_persistent(self) -> bool:
        """Whether it changes state, and not only what this message says."""
        return self.operator != TRANSIENT


class Ignored(Struct, frozen=True):
    """An operation that was left out, and why: the rest of the message counts."""

    modifier: Modifier
    reason: Reason
    detail: str


class Packet(Struct, frozen=True):
    """A message in its parts."""

    modifiers: tuple[Modifier, ...]
    method: str
    body: bytes = b""
    ignored: tuple[Ignored, ...] = ()
    """Operations with a reserved operator: to answer a query is not the business of a place."""


def is_text(value: bytes) -> bool:
    """Whether a value can stand on a line as it is, for people to read; otherwise its length goes first."""
    if b"\n" in value:
        return False
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def render(modifiers: Iterable[Modifier], method: str) -> bytes:
    """Everything in front of the body, which may follow at once: the line end of the method included."""
    if not is_name(method):
        raise Refused(Reason.MALFORMED, f"no name of a method: {method[:NAME_CHARS]!r}")
    parts = [_line(modifier) for modifier in modifiers]
    parts.append(b"%b\n" % method.encode())
    return b"".join(parts)


def _line(modifier: Modifier) -> bytes:
    operator, name, value = modifier.operator, modifier.name, modifier.value
    if operator not in OPERATORS:
        raise Refused(Reason.UNSUPPORTED, f"operator {operator!r} of {name!r}")
    if not is_name(name):
        raise Refused(Reason.MALFORMED, f"no name of a variable: {name[:NAME_CHARS]!r}")
    head = (operator + name).encode()
    if not value:
        return head + b"\n"
    if is_text(value):
        return b"%b\t%b\n" % (head, value)
    return b"%b %d\t%b\n" % (head, len(value), value)


def parse(data: bytes, limits: PlacesConfig | None = None) -> Packet:
    """A whole message."""
    parser = Parser(limits)
    parser.feed(data)
    parser.finish()
    modifiers, method = parser.head()
    return Packet(modifiers, method, parser.take(), parser.ignored)


def parse_section(data: bytes, limits: PlacesConfig | None = None) -> Packet:
    """What the header's length says is in front of the body, and nothing else."""
    packet = parse(data, limits)
    if packet.body:
        offset = len(data) - len(packet.body)
        raise RemoteError(Reason.MALFORMED, f"offset {offset}: the method ends before the section does")
    return packet


def check_transient(modifiers: Iterable[Modifier]) -> None:
    """Raise `RemoteError` if one of them would change state: who is no host may not ask for that."""
    for modifier in modifiers:
        if modifier.is_persistent:
            raise RemoteError(Reason.NOT_ALLOWED, f"{modifier.operator}{modifier.name} in a request")


class Parser:
    """Takes a message in pieces of any size. After a `RemoteError` it is of no use any more."""

    def __init__(self, limits: PlacesConfig | None = None) -> None:
        limits = limits or PlacesConfig()
        self._value_bytes = limits.value_bytes
        self._section_bytes = limits.modifier_bytes
        self._buffer = bytearray()
        self._base = 0
        """Offset in the message of the buffer's first byte."""
        self._searched = 0
        """Up to here in the buffer there is no line end: not searched again."""
        self._modifiers: list[Modifier] = []
        self._ignored: list[Ignored] = []
        self._method: str | None = None

    @property
    def packet_head(self) -> tuple[tuple[Modifier, ...], str] | None:
        """Modifiers and method, once they are complete: the method can be called before the body is there."""
        return None if self._method is None else (tuple(self._modifiers), self._method)

    @property
    def ignored(self) -> tuple[Ignored, ...]:
        """Operations that were left out."""
        return tuple(self._ignored)

    @property
    def offset(self) -> int:
        """Bytes that were understood or taken so far; with a complete head, where the body begins."""
        return self._base

    def head(self) -> tuple[tuple[Modifier, ...], str]:
        """The same as `packet_head`; `RemoteError` if the message ended without a method."""
        head = self.packet_head
        if head is None:
            raise RemoteError(Reason.MALFORMED, f"offset {self._base}: no method")
        return head

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        self._buffer += data
        if self._method is not None:
            return
        at = 0
        while self._method is None:
            end = self._step(at)
            if end is None:
                break
            at = end
            self._searched = at
        if at:
            del self._buffer[:at]
            self._base += at
            self._searched = max(self._searched - at, 0)

    def finish(self) -> None:
        """There is no more: a method needs no line end then. Anything else half said is a fault."""
        if self._method is None:
            match = _name(self._buffer)
            if match is None or not match.end() or match.end() != len(self._buffer):
                what = "no method" if not self._buffer else "ends in the middle of a modifier"
                raise RemoteError(Reason.MALFORMED, f"offset {self._base}: {what}")
            self._set_method(0, match.end(), match.end())
            self._base += match.end()
            self._buffer.clear()

    def take(self) -> bytes:
        """The bytes of the body that came since the last call."""
        if self._method is None:
            return b""
        taken = bytes(self._buffer)
        self._base += len(taken)
        self._buffer.clear()
        return taken

    def _step(self, at: int) -> int | None:
        """Understand one modifier, or the method; where the next begins, or None: more bytes are needed."""
        buffer = self._buffer
        if at == len(buffer):
            return None
        operator = buffer[at]
        start = at + (operator in _OPERATORS or operator in _RESERVED)
        match = _name(buffer, start)
        end = start if match is None else match.end()
        if end - start > NAME_CHARS:
            raise self._fault(at, f"a name of more than {NAME_CHARS} characters", Reason.TOO_LARGE)
        if end == len(buffer):
            return None
        if end == start:
            raise self._fault(start, "no name")
        if start == at:
            if buffer[end] != _LF:
                raise self._fault(end, "something behind the name of the method")
            self._set_method(at, end, end + 1)
            return end + 1
        found = self._value(at, end)
        if found is None:
            return None
        value, end_of_line = found
        self._add(operator, bytes(buffer[start:end]), value)
        return end_of_line

    def _value(self, at: int, end: int) -> tuple[bytes, int] | None:
        """The value behind the name that ends at `end`, and where its line ends."""
        separator = self._buffer[end]
        if separator == _LF:
            self._check_section(at, end + 1)
            return b"", end + 1
        if separator == _TAB:
            return self._text_value(at, end + 1)
        if separator == _SP:
            return self._counted_value(at, end + 1)
        raise self._fault(end, "neither a value nor the end of the line")

    def _text_value(self, at: int, start: int) -> tuple[bytes, int] | None:
        buffer = self._buffer
        room = min(self._value_bytes, self._section_bytes - self._base - start - 1)
        end = buffer.find(b"\n", max(start, self._searched), start + room + 1) if room >= 0 else -1
        if end < 0:
            if room < 0 or len(buffer) > start + room:
                raise self._fault(at, "a value that is too large", Reason.TOO_LARGE)
            self._searched = len(buffer)
            return None
        return bytes(buffer[start:end]), end + 1

    def _counted_value(self, at: int, start: int) -> tuple[bytes, int] | None:
        buffer = self._buffer
        match = _digits(buffer, start)
        digits_end = start if match is None else match.end()
        if digits_end - start > _LENGTH_DIGITS:
            raise self._fault(at, "a value that is too large", Reason.TOO_LARGE)
        if digits_end == len(buffer):
            return None
        if digits_end == start or buffer[digits_end] != _TAB:
            raise self._fault(digits_end, "no length")
        length = int(buffer[start:digits_end])
        first = digits_end + 1
        end = first + length
        if length > self._value_bytes:
            raise self._fault(at, "a value that is too large", Reason.TOO_LARGE)
        self._check_section(at, end + 1)
        if end >= len(buffer):
            return None
        if buffer[end] != _LF:
            raise self._fault(end, "no line end behind a value of this length")
        return bytes(buffer[first:end]), end + 1

    def _add(self, operator: int, name: bytes, value: bytes) -> None:
        modifier = Modifier(chr(operator), name.decode("ascii"), value)
        if operator in _RESERVED:
            self._ignored.append(Ignored(modifier, Reason.UNSUPPORTED, "a reserved operator"))
        else:
            self._modifiers.append(modifier)

    def _set_method(self, at: int, end: int, end_of_line: int) -> None:
        if end - at > NAME_CHARS:
            raise self._fault(at, f"a name of more than {NAME_CHARS} characters", Reason.TOO_LARGE)
        self._check_section(at, end_of_line)
        self._method = self._buffer[at:end].decode("ascii")

    def _check_section(self, at: int, end: int) -> None:
        if self._base + end > self._section_bytes:
            raise self._fault(at, "a value that is too large", Reason.TOO_LARGE)

    def _fault(self, at: int, what: str, reason: Reason = Reason.MALFORMED) -> RemoteError:
        return RemoteError(reason, f"offset {self._base + at}: {what}")


class Header(Struct, frozen=True, gc=False):
    """What the text itself does not say."""

    modifier_bytes: int
    """Bytes of the text up to the body."""
    delta: int | None = None
    """How many messages ago the state was changed last; 0: it begins anew. None: state is not touched."""
    hash: bytes | None = None
    """SHA-256 of the state behind this message's own modifiers. Only with a delta: otherwise nobody
    could know whether a message that they miss changes what is hashed."""


def encode_header(header: Header) -> bytes:
    """Its bytes."""
    flags = _HAS_DELTA * (header.delta is not None) | _HAS_HASH * (header.hash is not None)
    data = _fixed.pack(VERSION, flags, header.modifier_bytes)
    if header.delta is not None:
        data += _delta.pack(header.delta)
    return data + (header.hash or b"")


def read_header(data: bytes, limits: PlacesConfig | None = None) -> tuple[Header, int] | None:
    """The header that a message begins with and its length; None: more bytes are needed.

    `LARGEST_HEADER` bytes are always enough. `RemoteError` if this is no header.
    """
    if len(data) < _fixed.size:
        return None
    version, flags, length = _fixed.unpack_from(data)
    if version != VERSION:
        raise RemoteError(Reason.UNSUPPORTED, f"offset 0: version {version} of the header")
    if flags & ~(_HAS_DELTA | _HAS_HASH) or flags == _HAS_HASH:
        raise RemoteError(Reason.MALFORMED, f"offset 1: flags {flags}")
    if length > (limits or PlacesConfig()).modifier_bytes:
        raise RemoteError(Reason.TOO_LARGE, f"offset 2: {length} bytes of modifiers")
    if length == 0:
        raise RemoteError(Reason.MALFORMED, "offset 2: no method")
    end = _fixed.size + _delta.size * bool(flags & _HAS_DELTA) + HASH_BYTES * bool(flags & _HAS_HASH)
    if len(data) < end:
        return None
    delta = _delta.unpack_from(data, _fixed.size)[0] if flags & _HAS_DELTA else None
    if delta is not None and delta > LARGEST_COUNT:
        raise RemoteError(Reason.MALFORMED, f"offset {_fixed.size}: delta {delta}")
    return Header(length, delta, bytes(data[end - HASH_BYTES : end]) if flags & _HAS_HASH else None), end
