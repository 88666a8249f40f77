"""From rows of single runs to what tables, figures and targets need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum, log

from msgspec import Struct
from pyspark.sql import DataFrame

from linnet.lab.errors import LabError
from linnet.lab.metrics.repeats import Spread, spread
from linnet.lab.studies.groups.circle import PARTS
from linnet.lab.studies.groups.run import ALL, MACHINE

Key = tuple[str, str, int]
"""Operation, how it is acknowledged, and size."""


class LineFit(Struct, frozen=True):
    """``intercept + slope * size``."""

    intercept: float
    slope: float
    r_squared: float
    """Share of the variance that the line explains; 1 if there is none to explain."""

    def at(self, size: float) -> float:
        """What the line says for a size."""
        return self.intercept + self.slope * size


def fit_line(sizes: Sequence[float], values: Sequence[float]) -> LineFit:
    """Least squares of the values on the sizes, each pair counting alike."""
    if len(sizes) != len(values) or len(set(sizes)) < 2:
        raise LabError("a line needs at least two different sizes, and a value for each")
    mean_size, mean = fsum(sizes) / len(sizes), fsum(values) / len(values)
    pairs = list(zip(sizes, values, strict=True))
    slope = fsum((x - mean_size) * (y - mean) for x, y in pairs) / fsum((x - mean_size) ** 2 for x in sizes)
    intercept = mean - slope * mean_size
    residual = fsum((y - intercept - slope * x) ** 2 for x, y in pairs)
    variance = fsum((y - mean) ** 2 for y in values)
    return LineFit(intercept, slope, 1 - residual / variance if variance else 1.0)


class Growth(Struct, frozen=True):
    """How something grows: the line through it, its power, and what a member more costs at both ends."""

    line: LineFit
    power: float
    """Slope on logarithms: 1 is linear, 2 quadratic."""
    first: float
    """For each member more, between the two smallest sizes."""
    last: float
    """The same between the two largest."""

    @property
    def is_superlinear(self) -> bool:
        """Whether a member more costs over a tenth more in large groups than in small: of exact values."""
        return self.last > 1.1 * self.first

    @property
    def is_steep(self) -> bool:
        """Whether the power is well above 1: of measurements, whose single differences are mostly noise."""
        return self.power > 1.1


def growth_of(values: Mapping[int, float]) -> Growth | None:
    """The growth over sizes; None of fewer than three."""
    sizes = sorted(values)
    if len(sizes) < 3:
        return None
    heights = [values[size] for size in sizes]
    power = fit_line([log(size) for size in sizes], [log(max(value, 1e-9)) for value in heights]).slope
    first = (heights[1] - heights[0]) / (sizes[1] - sizes[0])
    last = (heights[-1] - heights[-2]) / (sizes[-1] - sizes[-2])
    return Growth(fit_line(sizes, heights), power, first, last)


class Time(Struct, frozen=True):
    """What a part of one run took, by all clients of a role together."""

    clients: int
    batch: int
    events: int
    value: int


class Outcomes(Struct, frozen=True):
    """All runs of a study: a few thousand numbers."""

    counts: Mapping[tuple[str, str, int, int], Sequence[Mapping[tuple[str, str], int]]]
    """By operation, acknowledgements, batch and size; of each repeat by role and measure."""
    times: Mapping[Key, Sequence[Mapping[tuple[str, str], Time]]]
    """By operation, acknowledgements and size; of each repeat by role and part."""

    def count(
        self, operation: str, size: int, measure: str, role: str = ALL, acks: str = "single", batch: int = 1
    ) -> int | None:
        """Something that was counted, in the first repeat; None if it was not run."""
        runs = self.counts.get((operation, acks, batch, size))
        return runs[0].get((role, measure)) if runs else None

    def differing(self) -> list[tuple[str, str, int, int]]:
        """Cases whose repeats did not come to the same bytes and calls."""
        return [key for key, runs in self.counts.items() if any(run != runs[0] for run in runs)]

    def sizes(self, operation: str, acks: str = "single") -> list[int]:
        """Sizes at which an operation was timed, rising."""
        return sorted(size for name, how, size in self.times if (name, how) == (operation, acks))

    def cpu(
        self,
        operation: str,
        size: int,
        role: str,
        parts: Sequence[str] = PARTS,
        acks: str = "single",
    ) -> Spread | None:
        """Milliseconds of one client for one operation, of each repeat; None if it was not run."""
        runs = self.times.get((operation, acks, size), ())
        found = [[run[role, part] for part in parts if (role, part) in run] for run in runs]
        values = [sum(each.value / each.clients / each.batch for each in times) for times in found if times]
        return spread([value / 1e6 for value in values]) if values else None

    def each(self, operation: str, size: int, role: str, parts: Sequence[str], acks: str) -> float | None:
        """Microseconds of these parts for each event that went through the first of them."""
        runs = self.times.get((operation, acks, size), ())
        times = {part: [run[role, part] for run in runs if (role, part) in run] for part in parts}
        events = sum(time.events for time in times[parts[0]])
        spent = sum(time.value for part in parts for time in times[part])
        return spent / events / 1e3 if events else None

    def load(self) -> tuple[float, float] | None:
        """The least and the greatest load average while something was timed."""
        loads = [run[MACHINE, "load"].value / 1000 for runs in self.times.values() for run in runs]
        return (min(loads), max(loads)) if loads else None


def read_outcomes(counts: DataFrame, times: DataFrame) -> Outcomes:
    """Gather what a report needs."""
    counted: dict[tuple[str, str, int, int], dict[int, dict[tuple[str, str], int]]] = {}
    for row in counts.toLocalIterator():
        runs = counted.setdefault((row.operation, row.acks, row.batch, row.size), {})
        runs.setdefault(row.repeat, {})[row.role, row.measure] = row["count"]
    timed: dict[Key, dict[int, dict[tuple[str, str], Time]]] = {}
    for row in times.toLocalIterator():
        repeats = timed.setdefault((row.operation, row.acks, row.size), {})
        time = Time(row.clients, row.batch, row.events, row.value)
        repeats.setdefault(row.repeat, {})[row.role, row.part] = time
    return Outcomes(
        {key: [runs[repeat] for repeat in sorted(runs)] for key, runs in sorted(counted.items())},
        {key: [runs[repeat] for repeat in sorted(runs)] for key, runs in sorted(timed.items())},
    )
