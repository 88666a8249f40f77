"""Several runs of the same thing with other seeds, as one line of a table."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, sqrt

from msgspec import Struct

from linnet.lab.errors import LabError


class Spread(Struct, frozen=True):
    """How far repeats lie apart: each value is the mean of one run."""

    count: int
    lowest: float
    mean: float
    highest: float
    deviation: float
    """Standard deviation of the sample; 0 of a single run."""

    @property
    def range(self) -> float:
        """The highest less the lowest."""
        return self.highest - self.lowest

    @property
    def range_percent(self) -> float | None:
        """The range in % of the lowest (Juslenius 2021, table 5.2); None if that is 0."""
        return self.range / self.lowest * 100 if self.lowest else None

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        return self.deviation / sqrt(self.count)


def spread(values: Sequence[float]) -> Spread:
    """Mean, extremes and deviation of repeats."""
    if not values:
        raise LabError("there are no repeats to take a mean of; run at least one")
    mean = fsum(values) / len(values)
    squares = fsum((value - mean) ** 2 for value in values)
    deviation = sqrt(squares / (len(values) - 1)) if len(values) > 1 else 0.0
    return Spread(len(values), min(values), mean, max(values), deviation)
