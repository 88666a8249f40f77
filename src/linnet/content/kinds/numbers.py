"""Numbers as people write them, ``12.5``, ``.5``, ``+3`` or ``1e3``: up to 15 digits, kept as floats.

Every decimal of 15 digits has a float of its own from which it can be told again, so two texts compare as
their floats do. More digits are refused, not rounded: what somebody wrote would silently mean something else.
"""

from __future__ import annotations

import re
import struct
from decimal import Decimal
from math import isfinite

from linnet.content.reader import Reader
from linnet.core.errors import BadText

DIGITS = 15
"""Digits of a number in all."""
BEGINS = "+-.0123456789"
"""What a number begins with."""
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,32}(?:\.[0-9]{1,32})?|\.[0-9]{1,32})(?:[eE][+-]?[0-9]{1,3})?")
_MAGNITUDE = (1 << 63) - 1


def read_number(reader: Reader) -> float:
    """The number that comes next; an exponent is only another way to write it."""
    found = reader.match(_NUMBER)
    if found is None:
        reader.fail("a number")
    text = found.group()
    if "e" in text or "E" in text:
        text = format(Decimal(text), "f")
    whole, _, fraction = text.lstrip("+-").partition(".")
    longest = max(len((whole + fraction).strip("0")), len(whole.lstrip("0")), len(fraction))
    if longest > DIGITS:
        reader.fail(f"a number of at most {DIGITS} digits, written out", found.start())
    if reader.text[reader.at : reader.at + 1].isalnum():
        reader.fail(f"the end of the number {found.group()}")
    return float(found.group()) + 0.0


def number_text(value: float) -> str:
    """The shortest text of a number, without an exponent."""
    text = format(Decimal(repr(value)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def plain_number(value: float) -> float:
    """What an application means by a number: rounded to 15 digits, so that it can be written."""
    if not isfinite(value):
        raise BadText(f"{value} is no number that can be compared")
    rounded = float(f"{value:.{DIGITS}g}") + 0.0
    read_number(Reader(number_text(rounded)))
    return rounded


def ordinal(value: float) -> int:
    """The place of a float among all floats: a whole number, in the same order, 0 for 0."""
    bits: int = struct.unpack(">q", struct.pack(">d", value + 0.0))[0]
    return bits if bits >= 0 else -(bits & _MAGNITUDE)
