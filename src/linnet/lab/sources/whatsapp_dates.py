"""How a line of a WhatsApp export begins: with a date and a time, in the manner of the phone's language."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from linnet.lab.errors import LabError
from linnet.lab.sources.clocks import milliseconds
from linnet.lab.sources.whatsapp_words import MARKS

ORDERS = ("dmy", "mdy", "ymd")

_BEFORE_NOON = r"上午|凌晨|早上|午前|오전|öö|ÖÖ"
_AFTER_NOON = r"下午|晚上|午後|오후|ös|ÖS"
_AM = r"[Aa]\.?\s?[Mm]\.?|ص|π\.?μ\.?|पूर्वाह्न"
_PM = r"[Pp]\.?\s?[Mm]\.?|م|μ\.?μ\.?|अपराह्न"
_HEAD = re.compile(
    rf"[{MARKS}]*(?P<bracket>\[)?[{MARKS}]*"
    r"(?P<one>\d{1,4})(?P<mark>[./-]|년)\s?(?P<two>\d{1,2})(?:[./-]|월)\s?(?P<three>\d{1,4})(?:\.|일)?"
    rf"[{MARKS}]*(?:,|\s(?:à|klo|um|at|om|kl\.|às|a las|alle)(?=\s))?\s*"
    rf"(?:(?P<before>{_BEFORE_NOON})|(?P<after>{_AFTER_NOON}))?\s?"
    r"(?P<hour>\d{1,2})[:.](?P<minute>\d{2})(?:[:.](?P<second>\d{2}))?"
    rf"(?:\s?(?:(?P<am>{_AM})|(?P<pm>{_PM})))?[{MARKS}]*"
    r"(?(bracket)\]\s?|(?:\s[-–]\s|,\s))"  # noqa: RUF001 - some exports have the longer dash
    r"(?P<rest>.*)",
    re.DOTALL,
)


class Head(NamedTuple):
    """The beginning of a message, not yet understood: three numbers of a date and a time of day."""

    numbers: tuple[int, int, int]
    dots: bool
    hour: int
    """From 0 to 23, or -1 if it cannot be."""
    minute: int
    second: int | None
    bracketed: bool
    """As telephones of Apple write it."""
    rest: str


def head_of(line: str) -> Head | None:
    """The head of a line; None if the line goes on with the message before."""
    match = _HEAD.match(line)
    if match is None:
        return None
    first, last = match["one"], match["three"]
    if not (len(first) == 4 or len(last) in (2, 4)):
        return None
    numbers = (int(first), int(match["two"]), int(last))
    second = None if match["second"] is None else int(match["second"])
    early, late = match["before"] or match["am"], match["after"] or match["pm"]
    hour = _hour(int(match["hour"]), bool(early), bool(late))
    bracketed = match["bracket"] is not None
    return Head(numbers, match["mark"] == ".", hour, int(match["minute"]), second, bracketed, match["rest"])


def _hour(hour: int, early: bool, late: bool) -> int:
    if not (early or late):
        return hour
    if not 1 <= hour <= 12:
        # Some write 0 for midnight, and some both: 21:15 PM.
        return hour if (hour == 0 and early) or (late and hour < 24) else -1
    return hour % 12 + (12 if late else 0)


def order_of(shown: str, heads: Iterable[Head], given: str) -> tuple[str, str]:
    """The order of day, month and year in a file, and how fine its clock is.

    A number above 12 is no month; four digits are a year; dates with dots have the day first in every
    language that writes them so. `LabError` if there is no head, or the order cannot be known.
    """
    first = second = year_first = dots = seconds = count = wrong = 0
    for head in heads:
        count += 1
        one, two, _ = head.numbers
        seconds += head.second is not None
        year_first += one > 99
        wrong += bool(given) and head.numbers[given.index("m")] > 12
        dots += head.dots
        first = max(first, one if one <= 99 else 0)
        second = max(second, two)
    if not count:
        raise LabError(f"{shown}: no line begins with a date and a time: is it an export of WhatsApp?")
    granularity = "s" if seconds == count else "min"
    if wrong * 10 > count:
        raise LabError(f"{shown}: with --dates {given} months would be above 12: give the order that it has")
    if given:
        return given, granularity
    if year_first == count:
        return "ymd", granularity
    if year_first or (first > 12 and second > 12):
        raise LabError(f"{shown}: its dates are of several kinds: give --dates dmy, mdy or ymd")
    if first > 12 or dots == count:
        return "dmy", granularity
    if second > 12:
        return "mdy", granularity
    raise LabError(f"{shown}: no day is above 12, so days look like months: give --dates dmy or --dates mdy")


def moment_of(head: Head, order: str, zone: ZoneInfo) -> int | None:
    """The time of a head in Unix milliseconds; None if there is no such day or time.

    An hour that comes twice, when clocks are put back, is taken as the first of the two.
    """
    place = {letter: head.numbers[number] for number, letter in enumerate(order)}
    year = place["y"] + 2000 if place["y"] < 100 else place["y"]
    try:
        moment = datetime(year, place["m"], place["d"], head.hour, head.minute, head.second or 0, tzinfo=zone)
    except ValueError:
        return None
    return milliseconds(moment)
