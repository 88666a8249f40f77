"""Times as sources write them, in integer milliseconds of Unix time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from linnet.lab.errors import LabError

EARLIEST = 631_152_000_000
"""1990: nothing that people said to each other here is older."""
LATEST = 4_102_444_800_000
"""2100."""

TIME_OUTSIDE = "the time lies outside 1990 to 2100"
NO_TIME = "the time cannot be read"

_DECIMAL = re.compile(r"([0-9]{1,18})(?:\.([0-9]{1,9}))?", re.ASCII)
_UNITS = {"seconds": 1000.0, "milliseconds": 1.0, "microseconds": 0.001, "nanoseconds": 0.000001}


def from_seconds(text: str) -> int | None:
    """Seconds with or without a fraction, cut to milliseconds; None if it is no such number."""
    match = _DECIMAL.fullmatch(text)
    if match is None:
        return None
    whole, fraction = match.groups()
    return int(whole) * 1000 + (int(fraction[:3].ljust(3, "0")) if fraction else 0)


def from_milliseconds(text: str) -> int | None:
    """Whole milliseconds; None if it is no such number."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else None


def from_iso(text: str, zone: ZoneInfo) -> int | None:
    """A date and a time as ISO 8601 has them; without an offset it is meant in the zone."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return milliseconds(moment if moment.tzinfo is not None else moment.replace(tzinfo=zone))


def milliseconds(moment: datetime) -> int:
    """An exact count: no floating point in between."""
    offset = moment.utcoffset()
    if offset is None:
        raise ValueError("a moment without a time zone")
    since = moment.replace(tzinfo=None) - offset - datetime(1970, 1, 1)  # noqa: DTZ001 - the zone is off
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


def plausible(ts: int) -> bool:
    """Whether people could have said something then."""
    return EARLIEST <= ts < LATEST


def zone_of(name: str) -> ZoneInfo:
    """A time zone by its name; `LabError` if there is none."""
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError) as error:
        raise LabError(f"--timezone {name!r} is not known: write a name such as Europe/Berlin") from error


def check_unit(shown: str, sample: Sequence[tuple[str, int | None]], unit: str, option: str) -> None:
    """`LabError` if most times of a sample, as written and as read in this unit, cannot be right."""
    wrong = [text for text, ts in sample if ts is None or not plausible(ts)]
    if 2 * len(wrong) <= len(sample) or not wrong:
        return
    advice = next((f"; they look like {other}" for other in _UNITS if _fits(wrong, other)), "")
    raise LabError(
        f"{shown}: {len(wrong)} of the first {len(sample)} times are no {unit} between 1990 and 2100, "
        f"such as {wrong[0][:40]!r}{advice}: {option}"
    )


def _fits(texts: Sequence[str], unit: str) -> bool:
    values = [int(match.group(1)) for text in texts if (match := _DECIMAL.fullmatch(text))]
    return bool(values) and all(plausible(int(value * _UNITS[unit])) for value in values)
