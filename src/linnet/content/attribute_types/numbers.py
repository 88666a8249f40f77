"""Numbers as people write them, ``12.5``, ``.5``, ``+3`` or ``1e3``: up to 15 digits, kept as floats.

Every decimal of 15 digits has a float of its own from which it can be told again, so two texts compare as
their floats do. More digits are refused, not rounded: what somebody wrote would silently mean something else.

Ranges of numbers and of dates, each bound closed or open, or absent.
"""

from __future__ import annotations

import re
import struct
from decimal import Decimal
from math import inf, isfinite
from typing import TypeVar

from msgspec import Struct

from linnet.content.attribute_types.dates import EARLIEST, LATEST, date_text, read_date
from linnet.content.predicate_reader import Reader
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


S = TypeVar("S", bound="Span")


class Span(Struct, frozen=True, gc=False):
    """From one value to another of the same unit. A bound that is not there is infinite, and open."""

    low: float
    high: float
    low_open: bool = False
    high_open: bool = False

    def __post_init__(self) -> None:
        if not (self.low < self.high or (self.low == self.high and not self.low_open and not self.high_open)):
            raise BadText("nothing is in this range")
        if not (isfinite(self.low) or (self.low == -inf and self.low_open)):
            raise BadText("the lower bound is no number")
        if not (isfinite(self.high) or (self.high == inf and self.high_open)):
            raise BadText("the upper bound is no number")
        for bound in (self.low, self.high):
            if isfinite(bound):
                self._check(bound)

    @staticmethod
    def _check(bound: float) -> None:
        raise NotImplementedError

    @staticmethod
    def _bound_text(bound: float) -> str:
        raise NotImplementedError

    @property
    def exact(self) -> bool:
        """Whether it is a single value, such as an event has."""
        return self.low == self.high

    @property
    def text(self) -> str:
        """What follows the name."""
        if self.exact:
            return f"={self._bound_text(self.low)}"
        low = self._bound_text(self.low) if isfinite(self.low) else ""
        high = self._bound_text(self.high) if isfinite(self.high) else ""
        return f"{'(' if self.low_open else '['}{low},{high}{')' if self.high_open else ']'}"

    @property
    def first(self) -> int:
        """The place among all floats of the first that is in it."""
        return ordinal(self.low) + self.low_open

    @property
    def last(self) -> int:
        """The place among all floats of the last that is in it."""
        return ordinal(self.high) - self.high_open

    def covers(self, other: Span) -> bool:
        """Whether it accepts all that the other accepts."""
        if self.low > other.low or (self.low == other.low and self.low_open and not other.low_open):
            return False
        return self.high > other.high or (self.high == other.high and (other.high_open or not self.high_open))

    def merged(self: S, other: S) -> S | None:
        """The range of both, if they overlap or touch; None if there is something between them."""
        lower, upper = (self, other) if self.low <= other.low else (other, self)
        if lower.high < upper.low or (lower.high == upper.low and lower.high_open and upper.low_open):
            return None
        low, low_open = min((self.low, self.low_open), (other.low, other.low_open))
        high, high_closed = max((self.high, not self.high_open), (other.high, not other.high_open))
        return type(self)(low, high, low_open, not high_closed)


class NumberRange(Span, frozen=True, gc=False):
    """A range of numbers: ``price[10,20)``, ``price=12.5``."""

    @staticmethod
    def _check(bound: float) -> None:
        if plain_number(bound) != bound:
            raise BadText(f"{bound!r} has more digits than can be written")

    @staticmethod
    def _bound_text(bound: float) -> str:
        return number_text(bound)


class DateRange(Span, frozen=True, gc=False):
    """A range of moments, in milliseconds since 1970: ``day[2026-11-01,2026-12-01)``."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isfinite(self.low) and not isfinite(self.high):
            raise BadText("a range of dates has a bound")

    def merged(self, other: DateRange) -> DateRange | None:
        """The range of both, unless that is all of time, which cannot be told from any number."""
        if min(self.low, other.low) == -inf and max(self.high, other.high) == inf:
            return None
        return super().merged(other)

    @staticmethod
    def _check(bound: float) -> None:
        if bound != int(bound) or not EARLIEST <= bound <= LATEST:
            raise BadText(f"{bound!r} is no date that can be written")

    @staticmethod
    def _bound_text(bound: float) -> str:
        return date_text(bound)


def read_span(reader: Reader) -> NumberRange | DateRange:
    """A range from its opening bracket on."""
    low_open = reader.need("[(", "[ or (") == "("
    low, is_date = (-inf, None) if reader.peek() == "," else _read_bound(reader, None)
    reader.need(",", "a comma and the upper bound")
    reader.peek()
    at = reader.at
    high, is_date = (inf, is_date) if reader.peek() in (")", "]") else _read_bound(reader, is_date)
    high_open = reader.need("])", "] or )") == ")"
    if low > high:
        reader.fail("a bound that is not below the other", at)
    low_open, high_open = low_open or low == -inf, high_open or high == inf
    if low == high and (low_open or high_open):
        reader.fail("a range that has something in it: one value alone has [ and ]", at)
    return (DateRange if is_date else NumberRange)(low, high, low_open, high_open)


def read_exactly(reader: Reader) -> NumberRange | DateRange:
    """A single number or date."""
    value, is_date = _read_bound(reader, None)
    return (DateRange if is_date else NumberRange)(value, value)


def _read_bound(reader: Reader, dates: bool | None) -> tuple[float, bool]:
    """A number or a date, and which of them; if the other bound is known, the same."""
    reader.peek()
    at = reader.at
    moment = read_date(reader)
    if moment is not None:
        if dates is False:
            reader.fail("a number, as the other bound is", at)
        return moment, True
    if dates:
        reader.fail("a date, as the other bound is", at)
    if reader.peek() not in BEGINS or not reader.peek():
        reader.fail("a number or a date")
    return read_number(reader), False
