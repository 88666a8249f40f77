"""Numbers as people read them."""

from __future__ import annotations

from math import floor, log10
from numbers import Integral

from linnet.lab.report.parts import Cell

NOTHING = "\N{EN DASH}"
_MINUTE, _HOUR = 60, 3600


def cell_text(value: Cell) -> str:
    """What stands in a table: thousands apart, four digits that say something, a dash for nothing."""
    if value is None:
        return NOTHING
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Integral):
        return f"{int(value):,}"
    return _float_text(float(value))


def _float_text(value: float) -> str:
    if value == 0:
        return "0"
    size = floor(log10(abs(value)))
    if size < -4:
        return f"{value:.3g}"
    text = f"{value:,.{max(0, 3 - size)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def percent(value: float) -> str:
    """A difference with its sign."""
    return f"{value:+.1f} %" if abs(value) < 1000 else f"{value:+,.0f} %"


def seconds_text(seconds: float) -> str:
    """A time that something took."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE:02} s"
    return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE:02} min"


def bytes_text(count: int) -> str:
    """An amount of memory in binary units."""
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.2f} GiB"
