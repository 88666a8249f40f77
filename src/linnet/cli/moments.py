"""Parses and prints times for users."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from linnet.core.errors import BadText

_AGO = re.compile(r"(?P<count>\d{1,9}(\.\d{1,6})?)(?P<unit>[smhd])")
_YEAR = 365.2425 * 86_400
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def wall_clock() -> float:
    """Return the present Unix time."""
    return datetime.now(UTC).timestamp()


def parse_since(text: str, now: float) -> float | None:
    """Return the Unix time from which on history is wanted: 0 for all of it, None for new events only.

    Accepts ``beginning``, ``now``, a length of time before now (``90s``, ``15m``, ``2h``, ``7d``), or a date
    with or without a time of day in ISO 8601, local time unless it says otherwise. Raises `BadText`
    otherwise.
    """
    text = text.strip()
    if text == "now":
        return None
    if text == "beginning":
        return 0.0
    ago = _AGO.fullmatch(text)
    if ago:
        return max(0.0, now - float(ago["count"]) * _SECONDS[ago["unit"]])
    try:
        return max(0.0, datetime.fromisoformat(text).timestamp())
    except (ValueError, OverflowError, OSError) as error:
        raise BadText(
            f"{text[:80]!r} is no time: write beginning, now, 15m, 2h, 7d or 2026-11-15T09:30"
        ) from error


def parse_duration(text: str) -> float:
    """Return the seconds of a length of time such as ``90s``, ``15m`` or ``7d``; else raise `BadText`."""
    found = _AGO.fullmatch(text.strip())
    seconds = float(found["count"]) * _SECONDS[found["unit"]] if found else 0.0
    if seconds <= 0:
        raise BadText(f"{text[:80]!r} is no length of time: write 90s, 15m, 2h or 7d")
    return seconds


def local_time(moment: float) -> datetime | None:
    """Return a Unix time as local time; None if no calendar has it. Peers may claim any time."""
    try:
        return datetime.fromtimestamp(moment).astimezone()
    except (ValueError, OverflowError, OSError):
        return None


def clock_text(moment: float) -> str:
    """Return a Unix time as local time in words for people; the year alone if no calendar has it."""
    found = local_time(moment)
    return _year_text(moment) if found is None else found.isoformat(sep=" ", timespec="seconds")


DOUBTFUL = "?"
"""The mark behind a doubtful time."""


def claimed_text(time_ms: int, is_doubtful: bool) -> str:
    """Return the time that an author claims in words for people, with a mark if it is doubtful."""
    text = clock_text(time_ms / 1000)
    return f"{text}{DOUBTFUL}" if is_doubtful and not text.endswith(DOUBTFUL) else text


def clock_warning(behind: float) -> str | None:
    """Say that this node's clock is wrong, if it is behind those of most peers; None if it is not."""
    if not behind:
        return None
    return (
        f"this node's clock is {duration_text(behind)} behind those of most of its peers: set the clock of "
        "this machine; meanwhile the times of events are judged by theirs"
    )


def utc_text(moment: float) -> str:
    """Return a Unix time in UTC in words for people; the year alone if no calendar has it."""
    try:
        return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return _year_text(moment)


def _year_text(moment: float) -> str:
    return f"year {1970 + int(moment / _YEAR)}?"


def duration_text(seconds: float) -> str:
    """Return a length of time in its largest two units."""
    parts: list[str] = []
    left = int(seconds)
    for unit, size in reversed(_SECONDS.items()):
        count, left = divmod(left, size)
        if count or parts or unit == "s":
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2])
