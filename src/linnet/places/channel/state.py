"""The state of a place: variables that every participant has a copy of (Toth 2013, sections 4.6 and 5.3).

What `+` and `-` do to a variable depends on the type that its first keyword names.

- ``_list``: elements are added at the end, or taken away, each once, the first that is equal. A list is
  ``|one|two``, or by lengths ``3 one|3 two``; either form is read (the PSYC specification, "list syntax").
- ``_amount`` and ``_counter``: whole numbers, added or subtracted.

For tables public documents give no syntax that is settled: an operation on one is left out with a
reason, as on every other type. All of this must come out the same on every node, to the byte.
"""

from __future__ import annotations

import hashlib
import re
import struct
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator

from msgspec import Struct

from linnet.core.errors import RemoteError
from linnet.core.reasons import Reason
from linnet.places.channel.packet import ASSIGN, AUGMENT, Ignored, Modifier, covers, is_name, slices
from linnet.places.config import PlacesConfig

_LARGEST = 2**63 - 1
_number = re.compile(rb"-?[0-9]{1,19}").fullmatch
_length = re.compile(rb"([0-9]{1,10}) ").match
Changes = dict[str, bytes | None]
"""New values by name; None: the variable is removed."""

_AFTER_UNDERSCORE = "`"
_name_length = struct.Struct(">I")
_value_length = struct.Struct(">Q")


def operate(modifier: Modifier, old: bytes) -> bytes:
    """Return the variable's new value; empty: it is removed. `RemoteError` if that makes no sense."""
    if covers("_list", modifier.name):
        return _operate_list(modifier, old)
    if covers("_amount", modifier.name) or covers("_counter", modifier.name):
        return _operate_number(modifier, old)
    raise RemoteError(Reason.UNSUPPORTED, f"{modifier.operator} on a variable of this type")


def parse_list(value: bytes) -> list[bytes]:
    """Return the elements of a list in either form; an empty value is a list without any."""
    if not value:
        return []
    if value.startswith(b"|"):
        if b"\n" in value:
            raise RemoteError(Reason.MALFORMED, "a line end in a list of text")
        return value[1:].split(b"|")
    elements: list[bytes] = []
    at = 0
    while True:
        match = _length(value, at)
        end = match.end() + int(match[1]) if match else len(value) + 1
        if match is None or end > len(value):
            raise RemoteError(Reason.MALFORMED, f"no element of a list at byte {at}")
        elements.append(value[match.end() : end])
        if end == len(value):
            return elements
        if value[end] != ord("|"):
            raise RemoteError(Reason.MALFORMED, f"no bar in a list at byte {end}")
        at = end + 1


def render_list(elements: list[bytes]) -> bytes:
    """Return a list in its one stored form: as text if its elements allow it, otherwise by lengths."""
    if any(b"|" in element or b"\n" in element for element in elements):
        return b"|".join(b"%d %b" % (len(element), element) for element in elements)
    return b"".join(b"|" + element for element in elements)


def _operate_list(modifier: Modifier, old: bytes) -> bytes:
    elements, given = parse_list(old), parse_list(modifier.value)
    if modifier.operator == AUGMENT:
        return render_list(elements + given)
    surplus: dict[bytes, int] = {}
    for element in given:
        surplus[element] = surplus.get(element, 0) + 1
    kept = []
    for element in elements:
        if surplus.get(element):
            surplus[element] -= 1
        else:
            kept.append(element)
    return render_list(kept)


def _operate_number(modifier: Modifier, old: bytes) -> bytes:
    left, right = _as_number(old or b"0"), _as_number(modifier.value)
    result = left + right if modifier.operator == AUGMENT else left - right
    if abs(result) > _LARGEST:
        raise RemoteError(Reason.TOO_LARGE, "a number that does not fit 64 bits")
    return b"%d" % result


def _as_number(value: bytes) -> int:
    if _number(value) is None:
        raise RemoteError(Reason.MALFORMED, "no whole number")
    return int(value)


class Effect(Struct, frozen=True):
    """The changes of a list of modifiers, applied or planned."""

    changes: Changes
    ignored: tuple[Ignored, ...] = ()


class State:
    """Variables by name. The encoding, and so the hash, depends on nothing but these."""

    def __init__(self, limits: PlacesConfig | None = None, variables: dict[str, bytes] | None = None) -> None:
        self._limits = limits or PlacesConfig()
        self._variables = dict(variables or {})
        self._names = sorted(self._variables)
        self._size = sum(len(name) + len(value) for name, value in self._variables.items())
        self._digest: bytes | None = None
        self._heads: dict[str, bytes] = {}
        """The bytes before a value in the encoding, as far as they were needed."""

    @property
    def variables(self) -> dict[str, bytes]:
        """A copy of all variables, in the order of their names."""
        return {name: self._variables[name] for name in self._names}

    def __len__(self) -> int:
        return len(self._names)

    def copy(self) -> State:
        """Return an equal state; the values themselves are shared."""
        return State(self._limits, self._variables)

    # Reading

    def get(self, name: str) -> tuple[str, bytes] | None:
        """Return the best match: this variable, or the closest less specific one that there is."""
        for candidate in slices(name)[:-1]:
            value = self._variables.get(candidate)
            if value is not None:
                return candidate, value
        return None

    def get_all(self, prefix: str) -> dict[str, bytes]:
        """Return this variable and all more specific ones, by whole keywords; all of them if it is empty."""
        return {name: self._variables[name] for name in self._covered(prefix)}

    def _covered(self, prefix: str) -> Iterator[str]:
        if not prefix:
            yield from self._names
            return
        if prefix in self._variables:
            yield prefix
        first = bisect_left(self._names, prefix + "_")
        past = bisect_left(self._names, prefix + _AFTER_UNDERSCORE)
        yield from self._names[first:past]

    # Changing

    def effect(self, modifiers: Iterable[Modifier], reset: bool = False) -> Effect:
        """Return the effect of modifiers. `RemoteError` if a value or the state would become too large."""
        changes: Changes = dict.fromkeys(self._names) if reset else {}
        ignored: list[Ignored] = []
        for modifier in modifiers:
            if not modifier.is_persistent:
                continue
            name = modifier.name
            if modifier.operator == ASSIGN:
                value = modifier.value
            else:
                old = changes[name] if name in changes else self._variables.get(name)
                try:
                    value = operate(modifier, old or b"")
                except RemoteError as error:
                    ignored.append(Ignored(modifier, error.reason, error.detail))
                    continue
            if len(value) > self._limits.value_bytes:
                raise RemoteError(Reason.TOO_LARGE, f"{name}: a value of {len(value)} bytes")
            changes[name] = value or None
        size = self._size + sum(self._growth(name, value) for name, value in changes.items())
        if size > self._limits.state_bytes:
            raise RemoteError(Reason.TOO_LARGE, f"a state of {size} bytes")
        return Effect(changes, tuple(ignored))

    def apply(self, modifiers: Iterable[Modifier], reset: bool = False) -> Effect:
        """Apply the persistent modifiers in order, all or (with `RemoteError`) none; return their effect."""
        effect = self.effect(modifiers, reset)
        self.change(effect.changes)
        return effect

    def change(self, changes: Changes) -> None:
        """Set and remove variables."""
        for name, value in changes.items():
            self._size += self._growth(name, value)
            known = name in self._variables
            self._heads.pop(name, None)
            if value is not None:
                self._variables[name] = value
                if not known:
                    insort(self._names, name)
            elif known:
                del self._variables[name]
                del self._names[bisect_left(self._names, name)]
        if changes:
            self._digest = None

    def _growth(self, name: str, value: bytes | None) -> int:
        old = self._variables.get(name)
        before = 0 if old is None else len(name) + len(old)
        return (0 if value is None else len(name) + len(value)) - before

    # The form in which it is hashed and sent

    def digest(self) -> bytes:
        """Return SHA-256 of the encoding: the same on every node with these variables."""
        if self._digest is None:
            self._digest = hashlib.sha256(self.encode()).digest()
        return self._digest

    def encode(self) -> bytes:
        """Return the encoding, by the bytes of the names: u32 length, name, u64 length, value."""
        heads, variables = self._heads, self._variables
        parts: list[bytes] = []
        for name in self._names:
            value = variables[name]
            head = heads.get(name)
            if head is None:
                raw = name.encode()
                head = heads[name] = _name_length.pack(len(raw)) + raw + _value_length.pack(len(value))
            parts.append(head)
            parts.append(value)
        return b"".join(parts)

    @classmethod
    def decode(cls, data: bytes, limits: PlacesConfig | None = None) -> State:
        """Return the state of an encoding; `RemoteError` if it is not the one encoding of some state."""
        limits = limits or PlacesConfig()
        variables: dict[str, bytes] = {}
        at, size, last = 0, 0, ""
        while at < len(data):
            name, start, end = _read_variable(data, at)
            size += len(name) + end - start
            if end - start > limits.value_bytes or size > limits.state_bytes:
                raise RemoteError(Reason.TOO_LARGE, f"offset {at}: a variable beyond what a state may hold")
            if name <= last or start == end:
                raise RemoteError(Reason.MALFORMED, f"offset {at}: not in order, or without a value")
            variables[name] = data[start:end]
            at, last = end, name
        return cls(limits, variables)


def _read_variable(data: bytes, at: int) -> tuple[str, int, int]:
    """Return the name of the variable at an offset, and where its value begins and ends."""
    try:
        name_at = at + _name_length.size
        name_end = name_at + _name_length.unpack_from(data, at)[0]
        name = data[name_at:name_end].decode("ascii")
        start = name_end + _value_length.size
        end = start + _value_length.unpack_from(data, name_end)[0]
    except (struct.error, UnicodeDecodeError) as error:
        raise RemoteError(Reason.MALFORMED, f"offset {at}: no variable") from error
    if not is_name(name) or end > len(data):
        raise RemoteError(Reason.MALFORMED, f"offset {at}: no variable")
    return name, start, end
