"""Axes that people can read: times as 1 s, 1 min, 1 h; shares as percent; sizes as they were run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import ceil, floor, isfinite, log10
from textwrap import fill

from matplotlib.axis import Axis
from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter, MaxNLocator, NullLocator

SHARE = "share"
"""The unit of fractions of 1, which are shown in percent."""
TIME = "ms"
"""The unit of durations in milliseconds, which a log axis shows in units of people."""

_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
_TIMES = (
    # The most telling first: where there is no room, the later ones give way.
    (1_000, "1 s"),
    (_HOUR, "1 h"),
    (_DAY, "1 d"),
    (_MINUTE, "1 min"),
    (1, "1 ms"),
    (7 * _DAY, "1 wk"),
    (365 * _DAY, "1 yr"),
    (100, "100 ms"),
    (10_000, "10 s"),
    (600_000, "10 min"),
    (30 * _DAY, "30 d"),
    (10, "10 ms"),
    (6 * _HOUR, "6 h"),
    (3_650 * _DAY, "10 yr"),
    (36_500 * _DAY, "100 yr"),
)
_FINER = (
    (200, "200 ms"),
    (500, "500 ms"),
    (300, "300 ms"),
    (50, "50 ms"),
    (20, "20 ms"),
    (2_000, "2 s"),
    (5_000, "5 s"),
    (30_000, "30 s"),
    (5 * _MINUTE, "5 min"),
    (30 * _MINUTE, "30 min"),
    (3 * _HOUR, "3 h"),
    (12 * _HOUR, "12 h"),
    (3 * _DAY, "3 d"),
)
_LABEL_INCHES = 0.5
"""Room that the name of a time needs on an axis."""


def time_ticks(low: float, high: float, inches: float) -> list[tuple[int, str]]:
    """Times to mark on a log axis of this length, as many as fit, in their order."""
    length = log10(high / low)
    apart = _LABEL_INCHES * length / inches
    chosen: list[tuple[int, str]] = []
    for times in (_TIMES, _FINER):
        if times is _FINER and len(chosen) > 2:
            break
        for time, name in times:
            if low <= time <= high and all(abs(log10(time / other)) >= apart for other, _ in chosen):
                chosen.append((time, name))
    return sorted(chosen)


def duration(milliseconds: float) -> str:
    """A duration in the largest unit that leaves a number of 1 or more: ``2.7 h``."""
    for unit, size in (("d", _DAY), ("h", _HOUR), ("min", _MINUTE), ("s", _SECOND)):
        if milliseconds >= size:
            return f"{milliseconds / size:.3g} {unit}"
    return f"{milliseconds:.3g} ms"


def number(value: float) -> str:
    """A number for an axis: 2,048 rather than 2048.0, and 20 M rather than 2e7."""
    for name, size in (("G", 1e9), ("M", 1e6)):
        if abs(value) >= size:
            return f"{value / size:.3g} {name}"
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:.3g}"


def share(value: float) -> str:
    """A fraction in percent; little never reads as none, nor nearly all as all."""
    percent = value * 100
    if percent == round(percent) or 10 <= percent <= 99:
        return f"{percent:.0f} %"
    if percent < 1:
        return f"{percent:.2g} %"
    return f"{percent:.1f} %" if percent < 99.9 else "> 99.9 %"


def with_unit(label: str, unit: str, width: int = 80) -> str:
    """The name of an axis with its unit; percent signs and names of times stand at the ticks."""
    return fill(f"{label} ({unit})" if unit and unit != SHARE else label, width)


def dress(axis: Axis, values: Iterable[float], unit: str, inches: float, *, log: bool) -> None:
    """Ticks for the limits that the axis has by now, in words that fit its unit."""
    low, high = sorted(axis.get_view_interval())
    axis.set_minor_locator(NullLocator())
    places = sorted({value for value in values if isfinite(value)})
    if log and unit == TIME and low > 0:
        _fix(axis, time_ticks(low, high, inches))
    elif log and _few(places, inches, low, high):
        _fix(axis, [(place, number(place)) for place in places])
    elif log:
        _fix(
            axis, [(place, share(place) if unit == SHARE else number(place)) for place in _powers(low, high)]
        )
    else:
        axis.set_major_locator(MaxNLocator(nbins=max(3, int(inches / 0.6)), steps=[1, 2, 2.5, 5, 10]))
        axis.set_major_formatter(
            FuncFormatter(lambda value, _: share(value) if unit == SHARE else number(value))
        )


def _few(places: Sequence[float], inches: float, low: float, high: float) -> bool:
    """Whether the values themselves can be the ticks: few, and far enough from each other."""
    if not 1 < len(places) <= 14 or places[0] <= 0:
        return False
    closest = min(log10(b / a) for a, b in pairwise(places))
    return closest * inches / log10(high / low) > 0.42


def _powers(low: float, high: float) -> list[float]:
    """Powers of ten within the limits; where there are not even two, also their doubles and fives."""
    first, last = floor(log10(low)), ceil(log10(high))
    steps = range(first, last + 1, max(1, (last - first) // 7))
    tens = [10.0**power for power in steps if low <= 10.0**power <= high]
    if len(tens) > 1:
        return tens
    return [k * 10.0**power for power in steps for k in (1, 2, 5) if low <= k * 10.0**power <= high]


def _fix(axis: Axis, ticks: Sequence[tuple[float, str]]) -> None:
    axis.set_major_locator(FixedLocator([place for place, _ in ticks]))
    axis.set_major_formatter(FixedFormatter([name for _, name in ticks]))
