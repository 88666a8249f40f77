"""The text form of PSYC: names, modifiers, the method, the body, and the header before it.

Names of methods and variables are keywords from the general to the specific, each behind an underscore:
``_message_public_shout`` is a ``_message_public``, and that is a ``_message``. A reader that does not
know the specific name can still make sense of the general one (Toth 2013, section 6.5: try and slice).

The text (the PSYC specification, "packet")::

    :_volume<TAB>100                    for this message only
    =_location_planet<TAB>Earth         stays, as part of the state
    =_picture 3<TAB>...                 by length: any bytes, line ends too
    =_location_continent                no value; with `=` the variable goes
    _notice_profile_location            the method: the only part that must be there
    whatever follows is the body

Routing header, length and the closing bar of the specification are left out, since fragments have
what they say (Toth 2013, section 4.1).

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
"""The longest name; it also bounds the lookups for one name."""

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
    """Return whether a text may name a method or a variable (the PSYC specification: `kwchar`)."""
    return _NAME.fullmatch(text) is not None


def slices(name: str) -> tuple[str, ...]:
    """Return the name, then the name with one last keyword less each time, down to the empty name."""
    found = [name]
    while name:
        name = name[: max(name.rfind("_"), 0)]
        found.append(name)
    return tuple(found)


def covers(prefix: str, name: str) -> bool:
    """Return whether `prefix` is a slice of `name`: whole keywords, so `_a_b` does not cover `_a_bc`."""
    return not prefix or name == prefix or name.startswith(prefix + "_")


class Modifier(Struct, frozen=True, array_like=True, gc=False):
    """One operation on one variable."""

    operator: str
    name: str
    value: bytes

    @property
    def is_persistent(self) -> bool:
        """Whether the operation changes the state, beyond this message."""
        return self.operator != TRANSIENT


class Ignored(Struct, frozen=True):
    """An operation that was left out, and the reason; the rest of the message counts."""

    modifier: Modifier
    reason: Reason
    detail: str


class Packet(Struct, frozen=True):
    """A parsed message."""

    modifiers: tuple[Modifier, ...]
    method: str
    body: bytes = b""
    ignored: tuple[Ignored, ...] = ()
    """Operations with a reserved operator: a place does not answer queries."""


def is_text(value: bytes) -> bool:
    """Return whether a value can stand on a line as readable text; otherwise its length goes first."""
    if b"\n" in value:
        return False
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def render(modifiers: Iterable[Modifier], method: str) -> bytes:
    """Return everything before the body, including the line end of the method."""
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
    """Return a parsed message. A method without a body needs no line end."""
    limits = limits or PlacesConfig()
    modifiers: list[Modifier] = []
    ignored: list[Ignored] = []
    at = 0
    while at < len(data) and data[at] in _OPERATORS + _RESERVED:
        name, value, end = _read_operation(data, at, limits)
        modifier = Modifier(chr(data[at]), name, value)
        if data[at] in _RESERVED:
            ignored.append(Ignored(modifier, Reason.UNSUPPORTED, "a reserved operator"))
        else:
            modifiers.append(modifier)
        at = end
    end = _end_of_name(data, at, at)
    if end == at:
        raise _fault(at, "no method" if at == len(data) else "no name")
    if end < len(data) and data[end] != _LF:
        raise _fault(end, "something behind the name of the method")
    body = min(end + 1, len(data))
    _check_section(at, body, limits)
    return Packet(tuple(modifiers), data[at:end].decode("ascii"), data[body:], tuple(ignored))


def parse_section(data: bytes, limits: PlacesConfig | None = None) -> Packet:
    """Return the parsed section before the body; `RemoteError` if anything follows its method."""
    packet = parse(data, limits)
    if packet.body:
        offset = len(data) - len(packet.body)
        raise RemoteError(Reason.MALFORMED, f"offset {offset}: the method ends before the section does")
    return packet


def check_transient(modifiers: Iterable[Modifier]) -> None:
    """Raise `RemoteError` if a modifier would change state: only a host may do that."""
    for modifier in modifiers:
        if modifier.is_persistent:
            raise RemoteError(Reason.NOT_ALLOWED, f"{modifier.operator}{modifier.name} in a request")


def _read_operation(data: bytes, at: int, limits: PlacesConfig) -> tuple[str, bytes, int]:
    """Return the name and value of the operation that begins here, and the offset after its line."""
    end = _end_of_name(data, at, at + 1)
    if end == len(data):
        raise _cut_short(at)
    if end == at + 1:
        raise _fault(end, "no name")
    name, separator = data[at + 1 : end].decode("ascii"), data[end]
    if separator == _LF:
        _check_section(at, end + 1, limits)
        return name, b"", end + 1
    if separator == _TAB:
        return name, *_read_text_value(data, at, end + 1, limits)
    if separator == _SP:
        return name, *_read_counted_value(data, at, end + 1, limits)
    raise _fault(end, "neither a value nor the end of the line")


def _read_text_value(data: bytes, at: int, start: int, limits: PlacesConfig) -> tuple[bytes, int]:
    room = min(limits.value_bytes, limits.modifier_bytes - start - 1)
    end = data.find(b"\n", start, start + room + 1) if room >= 0 else -1
    if end >= 0:
        return data[start:end], end + 1
    if room < 0 or len(data) > start + room:
        raise _too_large(at)
    raise _cut_short(at)


def _read_counted_value(data: bytes, at: int, start: int, limits: PlacesConfig) -> tuple[bytes, int]:
    match = _digits(data, start)
    digits_end = start if match is None else match.end()
    if digits_end - start > _LENGTH_DIGITS:
        raise _too_large(at)
    if digits_end == len(data):
        raise _cut_short(at)
    if digits_end == start or data[digits_end] != _TAB:
        raise _fault(digits_end, "no length")
    length = int(data[start:digits_end])
    first = digits_end + 1
    end = first + length
    if length > limits.value_bytes:
        raise _too_large(at)
    _check_section(at, end + 1, limits)
    if end >= len(data):
        raise _cut_short(at)
    if data[end] != _LF:
        raise _fault(end, "no line end behind a value of this length")
    return data[first:end], end + 1


def _end_of_name(data: bytes, at: int, start: int) -> int:
    """Return where a name ends that begins at `start`, in an operation that begins at `at`."""
    match = _name(data, start)
    end = start if match is None else match.end()
    if end - start > NAME_CHARS:
        raise _fault(at, f"a name of more than {NAME_CHARS} characters", Reason.TOO_LARGE)
    return end


def _check_section(at: int, end: int, limits: PlacesConfig) -> None:
    if end > limits.modifier_bytes:
        raise _too_large(at)


def _too_large(at: int) -> RemoteError:
    return _fault(at, "a value that is too large", Reason.TOO_LARGE)


def _cut_short(at: int) -> RemoteError:
    return _fault(at, "ends in the middle of a modifier")


def _fault(at: int, what: str, reason: Reason = Reason.MALFORMED) -> RemoteError:
    return RemoteError(reason, f"offset {at}: {what}")


class Header(Struct, frozen=True, gc=False):
    """The fields of a message that its text does not contain."""

    modifier_bytes: int
    """The bytes of the text up to the body."""
    delta: int | None = None
    """The number of messages since the last change of state; 0: it begins anew. None: no change."""
    hash: bytes | None = None
    """SHA-256 of the state after this message's own modifiers. Only with a delta: otherwise a node that
    misses a message could not know whether that message changes the hashed state."""


def encode_header(header: Header) -> bytes:
    """Return the bytes of a header."""
    flags = _HAS_DELTA * (header.delta is not None) | _HAS_HASH * (header.hash is not None)
    data = _fixed.pack(VERSION, flags, header.modifier_bytes)
    if header.delta is not None:
        data += _delta.pack(header.delta)
    return data + (header.hash or b"")


def read_header(data: bytes, limits: PlacesConfig | None = None) -> tuple[Header, int] | None:
    """Return the header that a message begins with, and its length; None: more bytes are needed.

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
