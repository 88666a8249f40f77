"""How a figure grows with the size of a network: a straight line over log2 of the size."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, log2

from msgspec import Struct

from linnet.lab.errors import LabError


class LogFit(Struct, frozen=True):
    """``intercept + slope * log2(size)``."""

    intercept: float
    slope: float
    """What each doubling of the size adds."""
    r_squared: float
    """Share of the variance that the line explains; 1 if there is none to explain."""

    def at(self, size: float) -> float:
        """What the line says for a size."""
        return self.intercept + self.slope * log2(size)


def fit_log(sizes: Sequence[float], values: Sequence[float]) -> LogFit:
    """Least squares of the values on log2 of the sizes, each pair counting alike."""
    if len(sizes) != len(values):
        raise LabError(f"{len(sizes)} sizes and {len(values)} values do not pair up")
    if any(size <= 0 for size in sizes):
        raise LabError("a size of 0 or less has no logarithm")
    if len(set(sizes)) < 2:
        raise LabError("a growth needs at least two different sizes")
    logs = [log2(size) for size in sizes]
    mean_log, mean_value = fsum(logs) / len(logs), fsum(values) / len(values)
    pairs = list(zip(logs, values, strict=True))
    slope = fsum((x - mean_log) * (y - mean_value) for x, y in pairs) / fsum(
        (x - mean_log) ** 2 for x in logs
    )
    intercept = mean_value - slope * mean_log
    residual = fsum((y - intercept - slope * x) ** 2 for x, y in pairs)
    variance = fsum((y - mean_value) ** 2 for y in values)
    return LogFit(intercept, slope, 1 - residual / variance if variance else 1.0)
