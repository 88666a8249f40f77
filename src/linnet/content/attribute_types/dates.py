"""Dates and times as people write them, always in UTC, kept as whole milliseconds since 1970.

A date without a time is its first moment, so ``[2026-11-01,2026-12-01)`` is November.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from linnet.content.predicate_reader import Reader

_DAY = 86_400_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME = re.compile(r"T([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,3}))?)?")
EARLIEST = (datetime(1, 1, 1, tzinfo=UTC) - _EPOCH) // _MILLISECOND
LATEST = (datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC) - _EPOCH) // _MILLISECOND


def read_date(reader: Reader) -> float | None:
    """The date that comes next, if one does."""
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
    """The shortest text of a moment."""
    moment = _EPOCH + int(value) * _MILLISECOND
    day = f"{moment.year:04}-{moment.month:02}-{moment.day:02}"
    if value % _DAY == 0:
        return day
    text = f"{day}T{moment.hour:02}:{moment.minute:02}"
    if moment.microsecond:
        return f"{text}:{moment.second:02}.{moment.microsecond // 1000:03}".rstrip("0") + "Z"
    return f"{text}:{moment.second:02}Z" if moment.second else f"{text}Z"
