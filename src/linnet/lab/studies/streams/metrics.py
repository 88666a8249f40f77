"""From counts of single runs to what tables and figures need. Formulas are in docs/lab/metrics.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from linnet.core.quantiles import rank
from linnet.lab.metrics.repeats import Spread, spread

HISTOGRAMS = ("delay_ms", "hops", "hop_delay", "degrees")

Key = tuple[str, int, int]
"""Mode, size and degree."""


class Outcomes(Struct, frozen=True):
    """All runs of a study, small enough to be held: sums of each, and histograms over repeats."""

    totals: Mapping[Key, Sequence[Mapping[str, int]]]
    pools: Mapping[tuple[str, int, int, str], Mapping[int, int]]

    def has(self, mode: str, size: int, degree: int) -> bool:
        """Whether there are runs of this kind."""
        return (mode, size, degree) in self.totals

    def ratios(self, key: Key, above: str, below: str, scale: float = 1.0) -> Spread:
        """A quotient of two sums, for each repeat, and how far these lie apart."""
        return spread([run[above] / run[below] * scale for run in self.totals[key]])

    def ratio(self, key: Key, above: str, below: str, scale: float = 1.0) -> float:
        """A quotient of two sums over all repeats."""
        runs = self.totals[key]
        return sum(run[above] for run in runs) / sum(run[below] for run in runs) * scale

    def delay(self, key: Key) -> Spread:
        """Milliseconds from publication to first receipt: the mean of each repeat."""
        return self.ratios(key, "delay", "receipts", 1e-3)

    def estimate(self, key: Key) -> Spread:
        """Milliseconds of shortest paths from every node, over each repeat's overlay."""
        return self.ratios(key, "path_delay", "paths", 1e-3)

    def pool(self, key: Key, measure: str) -> Mapping[int, int]:
        """A histogram over all repeats; empty if there is none."""
        return self.pools.get((*key, measure), {})


def totals(counts: DataFrame) -> DataFrame:
    """Sums of each run. Grain: (mode, size, degree, repeat, measure)."""
    sums = counts.where(~F.col("measure").isin(*HISTOGRAMS))
    return sums.select("mode", "size", "degree", "repeat", "measure", "count")


def pooled(counts: DataFrame) -> DataFrame:
    """Histograms added up over repeats. Grain: (mode, size, degree, measure, bin)."""
    kept = counts.where(F.col("measure").isin(*HISTOGRAMS))
    return kept.groupBy("mode", "size", "degree", "measure", "bin").agg(F.sum("count").alias("count"))


def read_outcomes(counts: DataFrame) -> Outcomes:
    """Gather what a report needs: a few hundred numbers for each mode and size."""
    runs: dict[Key, dict[int, dict[str, int]]] = {}
    for mode, size, degree, repeat, measure, count in totals(counts).toLocalIterator():
        runs.setdefault((mode, size, degree), {}).setdefault(repeat, {})[measure] = count
    pools: dict[tuple[str, int, int, str], dict[int, int]] = {}
    for mode, size, degree, measure, bin, count in pooled(counts).toLocalIterator():
        pools.setdefault((mode, size, degree, measure), {})[bin] = count
    ordered = {key: [found[repeat] for repeat in sorted(found)] for key, found in sorted(runs.items())}
    return Outcomes(ordered, {key: dict(sorted(bins.items())) for key, bins in pools.items()})


def quantile(bins: Mapping[int, int], share: float) -> int | None:
    """The least bin up to which at least this share lies; None of nothing."""
    wanted = rank(share, sum(bins.values()))
    reached = 0
    for bin, count in sorted(bins.items()):
        reached += count
        if reached >= wanted:
            return bin
    return None


def shares(bins: Mapping[int, int]) -> tuple[list[int], list[float]]:
    """Each bin, and the share of all that lies up to it."""
    total, reached = sum(bins.values()), 0
    places, heights = [], []
    for bin, count in sorted(bins.items()):
        reached += count
        places.append(bin)
        heights.append(reached / total)
    return places, heights


def redundancy(outcomes: Outcomes, key: Key) -> Spread:
    """Duplicates of a message at each node but its publisher: one number for each repeat."""
    return spread([(run["duplicates"] - run["returned"]) / run["expected"] for run in outcomes.totals[key]])


def long_paths(outcomes: Outcomes, key: Key, least: int = 25) -> float | None:
    """Mean delay in milliseconds of what crossed so many links or more; None if nothing did."""
    counts, delays = outcomes.pool(key, "hops"), outcomes.pool(key, "hop_delay")
    receipts = sum(count for hops, count in counts.items() if hops >= least)
    took = sum(delay for hops, delay in delays.items() if hops >= least)
    return took / receipts / 1000 if receipts else None


def mean_bin(bins: Mapping[int, int]) -> float:
    """Mean over a histogram."""
    return sum(bin * count for bin, count in bins.items()) / sum(bins.values())
