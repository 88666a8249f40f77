"""Numbers as people write them, ``12.5``, ``.5``, ``+3`` or ``1e3``: up to 15 digits, kept as floats.

Every decimal of 15 digits has a float of its own from which it can be told again, so two texts compare as
their floats do. More digits are refused, not rounded: what somebody wrote would silently mean something else.

Dates and times are always in UTC, and kept as whole milliseconds since 1970. Ranges of numbers and of dates
have bounds that are closed, open or absent.
"""

from __future__ import annotations

import re
import struct
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import inf, isfinite
from typing import TypeVar

from msgspec import Struct

from linnet.content.attribute_types.text import Reader
from linnet.core.errors import BadText

_DAY = 86_400_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME = re.compile(r"T([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,3}))?)?")
EARLIEST = (datetime(1, 1, 1, tzinfo=UTC) - _EPOCH) // _MILLISECOND
LATEST = (datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC) - _EPOCH) // _MILLISECOND


def read_date(reader: Reader) -> float | None:
    """Read a date or moment if one comes next; None otherwise."""
    found = reader.match(_DATE)
    if found is None:
        return None
    year, month, day = map(int, found.groups())
    hours, minutes, seconds, microseconds = 0, 0, 0, 0
    time = _TIME.match(reader.text, reader.at)
    if time is not None:
        hour, minute, second, fraction = time.groups()
        hours, minutes, seconds = int(hour), int(minute), int(second or 0)
        microseconds = int((fraction or "").ljust(3, "0")) * 1000
        reader.at = time.end()
        if reader.text[reader.at : reader.at + 1] != "Z":
            reader.fail("Z: times are in UTC")
        reader.at += 1
    elif reader.text[reader.at : reader.at + 1].isalnum():
        reader.fail("a time such as T08:30Z, or the end of the date")
    try:
        moment = datetime(year, month, day, hours, minutes, seconds, microseconds, UTC)
    except ValueError as error:
        reader.fail(f"a date that exists ({error})", found.start())
    return float((moment - _EPOCH) // _MILLISECOND)


def date_text(value: float) -> str:
    """Return the shortest text of a moment."""
    moment = _EPOCH + int(value) * _MILLISECOND
    day = f"{moment.year:04}-{moment.month:02}-{moment.day:02}"
    if value % _DAY == 0:
        return day
    text = f"{day}T{moment.hour:02}:{moment.minute:02}"
    if moment.microsecond:
        return f"{text}:{moment.second:02}.{moment.microsecond // 1000:03}".rstrip("0") + "Z"
    return f"{text}:{moment.second:02}Z" if moment.second else f"{text}Z"


DIGITS = 15
"""Digits of a number in all."""
BEGINS = "+-.0123456789"
"""The characters that a number can begin with."""
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,32}(?:\.[0-9]{1,32})?|\.[0-9]{1,32})(?:[eE][+-]?[0-9]{1,3})?")
_MAGNITUDE = (1 << 63) - 1


def read_number(reader: Reader) -> float:
    """Read the number that comes next; an exponent is only another way to write it."""
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
    """Return the shortest text of a number, without an exponent."""
    text = format(Decimal(repr(value)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def plain_number(value: float) -> float:
    """Return a number of the application, rounded to 15 digits so that it can be written."""
    if not isfinite(value):
        raise BadText(f"{value} is no number that can be compared")
    rounded = float(f"{value:.{DIGITS}g}") + 0.0
    read_number(Reader(number_text(rounded)))
    return rounded


def ordinal(value: float) -> int:
    """Return the place of a float among all floats: a whole number, in the same order, 0 for 0."""
    bits: int = struct.unpack(">q", struct.pack(">d", value + 0.0))[0]
    return bits if bits >= 0 else -(bits & _MAGNITUDE)


S = TypeVar("S", bound="Span")


class Span(Struct, frozen=True, gc=False):
    """A range from one value to another of the same unit. An absent bound is infinite, and open."""

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
        """The condition as it is written after the attribute's name."""
        if self.exact:
            return f"={self._bound_text(self.low)}"
        low = self._bound_text(self.low) if isfinite(self.low) else ""
        high = self._bound_text(self.high) if isfinite(self.high) else ""
        return f"{'(' if self.low_open else '['}{low},{high}{')' if self.high_open else ']'}"

    @property
    def first(self) -> int:
        """The place among all floats of the lowest value in the range."""
        return ordinal(self.low) + self.low_open

    @property
    def last(self) -> int:
        """The place among all floats of the highest value in the range."""
        return ordinal(self.high) - self.high_open

    def covers(self, other: Span) -> bool:
        """Return whether it accepts every value that the other accepts."""
        if self.low > other.low or (self.low == other.low and self.low_open and not other.low_open):
            return False
        return self.high > other.high or (self.high == other.high and (other.high_open or not self.high_open))

    def merged(self: S, other: S) -> S | None:
        """Return the range of both if they overlap or touch; None if there is something between them."""
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
        """Return the range of both; None also for all of time, which would read as a range of all numbers."""
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
    """Read a range from its opening bracket on."""
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
    """Read a single number or date."""
    value, is_date = _read_bound(reader, None)
    return (DateRange if is_date else NumberRange)(value, value)


def _read_bound(reader: Reader, dates: bool | None) -> tuple[float, bool]:
    """Read a number or date, of the other bound's kind if that is known; return it, and if it is a date."""
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
