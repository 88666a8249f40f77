"""What `+` and `-` do to a variable, by the type that its first keyword names.

- ``_list``: elements are added at the end, or taken away, each once, the first that is equal. A list is
  ``|one|two``, or by lengths ``3 one|3 two``; either form is read (the PSYC specification, "list syntax").
- ``_amount`` and ``_counter``: whole numbers, added or subtracted.

For tables public documents give no syntax that is settled: an operation on one is left out with a
reason, as on every other type. All of this must come out the same on every node, to the byte.
"""

from __future__ import annotations

import re

from linnet.core.errors import RemoteError
from linnet.core.reasons import Reason
from linnet.places.channel.keywords import covers
from linnet.places.channel.psyc import AUGMENT, Modifier

_LARGEST = 2**63 - 1
_number = re.compile(rb"-?[0-9]{1,19}").fullmatch
_length = re.compile(rb"([0-9]{1,10}) ").match


def operate(modifier: Modifier, old: bytes) -> bytes:
    """The variable's new value; empty: it goes. `RemoteError` with the reason if that makes no sense."""
    if covers("_list", modifier.name):
        return _operate_list(modifier, old)
    if covers("_amount", modifier.name) or covers("_counter", modifier.name):
        return _operate_number(modifier, old)
    raise RemoteError(Reason.UNSUPPORTED, f"{modifier.operator} on a variable of this type")


def parse_list(value: bytes) -> list[bytes]:
    """The elements of a list in either form; an empty value is a list without any."""
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
    """The one form in which these elements are kept: as text if they can be, otherwise by lengths."""
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
