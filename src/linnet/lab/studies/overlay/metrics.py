"""From rows of single runs to what tables, figures and targets need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from pyspark.sql import DataFrame

from linnet.lab.metrics.repeats import Spread, spread

Key = tuple[str, str]
"""Experiment and setting."""
PPM = 1_000_000


class Outcomes(Struct, frozen=True):
    """All runs of a study: a few thousand numbers."""

    runs: Mapping[Key, Sequence[Mapping[tuple[str, int], int]]]
    """For each repeat by measure and bin."""

    def settings(self, experiment: str) -> list[str]:
        """What an experiment was run with."""
        return [setting for name, setting in self.runs if name == experiment]

    def has(self, experiment: str, setting: str) -> bool:
        """Whether there is such a run."""
        return (experiment, setting) in self.runs

    def spread(self, experiment: str, setting: str, measure: str, unit: float = 1.0) -> Spread | None:
        """A number of all repeats, divided by its unit; None if it was not measured."""
        runs = self.runs.get((experiment, setting), ())
        values = [run[measure, 0] / unit for run in runs if (measure, 0) in run]
        return spread(values) if values else None

    def mean(self, experiment: str, setting: str, measure: str, unit: float = 1.0) -> float | None:
        """The mean of all repeats."""
        found = self.spread(experiment, setting, measure, unit)
        return None if found is None else found.mean

    def ratio(self, experiment: str, setting: str, measure: str) -> float | None:
        """The mean of a ratio that is kept in millionths."""
        return self.mean(experiment, setting, measure, PPM)

    def curve(self, setting: str, part: str, whole: str) -> dict[int, float]:
        """A share over the rounds of an attack, all repeats together."""
        sums: dict[int, list[int]] = {}
        for run in self.runs.get(("sampling", setting), ()):
            for (measure, bin), count in run.items():
                if measure in (part, whole):
                    sums.setdefault(bin, [0, 0])[measure == whole] += count
        return {bin: lying / places for bin, (lying, places) in sorted(sums.items()) if places}

    def total(self, measure: str) -> int:
        """A count over all runs that have it."""
        return sum(run.get((measure, 0), 0) for runs in self.runs.values() for run in runs)


def read_outcomes(counts: DataFrame) -> Outcomes:
    """Gather what a report needs."""
    rows = (
        (r.experiment, r.setting, r.repeat, r.measure, r.bin, r["count"]) for r in counts.toLocalIterator()
    )
    return gather(rows)


def gather(rows: Iterable[Sequence[Any]]) -> Outcomes:
    """The same of plain rows."""
    found: dict[Key, dict[int, dict[tuple[str, int], int]]] = {}
    for experiment, setting, repeat, measure, bin, count in rows:
        runs = found.setdefault((experiment, setting), {})
        runs.setdefault(repeat, {})[measure, bin] = count
    return Outcomes({key: [runs[repeat] for repeat in sorted(runs)] for key, runs in sorted(found.items())})
