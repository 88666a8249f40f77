"""A study as tables, plots and targets see it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from linnet.lab.report.published import Published
from linnet.lab.studies.content.parameters import ContentParameters

Key = tuple[str, str, int, int, int]
"""Scenario, variant, nodes, backups, stage."""


class Spread(Struct, frozen=True):
    """The distribution of one metric."""

    points: int
    dropped: int
    mean: float | None
    least: int | None
    quarter: int | None
    half: int | None
    three_quarters: int | None
    most: int | None


class Counts(Struct, frozen=True):
    """What became of pairs of an event and a node that wants it."""

    expected: int
    missing: int
    duplicated: int
    unasked: int
    duplicated_percent: float | None
    reliability_percent: float | None


class View(Struct, frozen=True):
    """All that there is to show: some hundred numbers."""

    parameters: ContentParameters
    published: Published
    spreads: Mapping[tuple[Key, str], Spread]
    counts: Mapping[Key, Counts]
    cumulated: Mapping[tuple[Key, str], float | None]
    """Costs of stages up to this one, by metric."""
    absent: tuple[str, ...]
    """Published variants that the simulation cannot run yet."""

    def runs(self) -> list[Key]:
        """Scenarios in one piece, as they were run."""
        return [key for key in self.counts if key[4] == 0]

    def stages(self, scenario: str) -> list[Key]:
        """The stages of a scenario that has some, in their order."""
        return [key for key in self.counts if key[4] and key[0] == scenario]

    def summed(self, key: Key, metric: str, unit: float = 1.0) -> float | None:
        """What all stages up to this one cost, divided by the unit."""
        found = self.cumulated.get((key, metric))
        return None if found is None else found / unit

    def mean(self, key: Key, metric: str, unit: float = 1.0) -> float | None:
        """The mean of a metric, divided by its unit; None if it was not measured."""
        found = self.spreads.get((key, metric))
        return None if found is None or found.mean is None else found.mean / unit

    def most(self, key: Key, metric: str, unit: float = 1.0) -> float | None:
        """The highest value of a metric, divided by its unit."""
        found = self.spreads.get((key, metric))
        return None if found is None or found.most is None else found.most / unit

    def printed(self, id: str) -> float | None:
        """A published number, if there is one."""
        return self.published.number(id) if id in self.published else None
