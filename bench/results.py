"""What a measurement yields: runs, their median, and how it stands against a target."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct


class Plan(Struct, frozen=True):
    """How much is tried."""

    runs: int
    """Runs of which the median is told."""
    seconds: float
    """About how long one run of a small loop takes."""
    quick: bool
    """Whether a rough figure is enough: fewer messages, fewer combinations."""
    directory: Path
    """Where files are written that a measurement needs; the disk under it is the one measured."""

    def count(self, full: int, quick: int) -> int:
        """So many in a full run, so many in a quick one."""
        return quick if self.quick else full


class Measure(Struct, frozen=True):
    """One figure, as often as it was taken."""

    section: str
    name: str
    unit: str
    runs: tuple[float, ...]
    note: str = ""
    failed: bool = False
    """Whether it should have been taken and could not; the note says why."""

    @property
    def key(self) -> str:
        """What comparisons call it."""
        return f"{self.section}: {self.name}"

    @property
    def median(self) -> float | None:
        """The figure to tell; None if it could not be taken."""
        return statistics.median(self.runs) if self.runs else None


class Comparison(Struct, frozen=True):
    """A target and how far we are."""

    name: str
    value: float
    target: float
    unit: str
    at_least: bool
    """Whether the value is to be at least the target, or below it."""

    @property
    def reached(self) -> bool:
        """Whether the target is met."""
        return self.value >= self.target if self.at_least else self.value < self.target


class Figures:
    """The medians that were taken, by section and name."""

    def __init__(self, measures: Iterable[Measure]) -> None:
        self._medians = {measure.key: measure.median for measure in measures}

    def get(self, section: str, name: str) -> float | None:
        """A median, if that was measured in this run."""
        return self._medians.get(f"{section}: {name}")


def percentile(values: Iterable[float], share: float) -> float:
    """The value below which this share of all values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
