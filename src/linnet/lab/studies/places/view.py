"""All that the parts of the report look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from linnet.lab.report.parts import StageCost
from linnet.lab.studies.places.findings import Finding
from linnet.lab.studies.places.parameters import PlacesParameters
from linnet.lab.studies.places.scale import TO_STATE, Large, sample, sampled_places


class Compared(Struct, frozen=True):
    """Random logs, by both ways."""

    units: int
    jobs: Mapping[str, tuple[int, int, str | None]]
    """Answers, differences, and one of these, by job."""
    findings: tuple[Finding, ...]


class Scale(Struct, frozen=True):
    """What the large log came to."""

    rows: int
    taken: int
    missing: int
    """Numbers in gaps."""
    last: int
    """One more than the last numbers of all places, added up."""
    generation_faults: int
    hashes: int
    wrong_hashes: int
    verdicts: Mapping[str, int]
    whole: int
    messages: int
    sampled: int
    sampled_wrong: int
    """States of the sample that the shipped classes reckon otherwise."""
    growth: tuple[tuple[int, float], ...]
    """Variables of a place behind some messages: the mean of all places."""
    costs: tuple[StageCost, ...]

    def seconds(self, name: str) -> float:
        """What a stage took."""
        return next((cost.seconds for cost in self.costs if cost.name == name), 0.0)

    @property
    def state_seconds(self) -> float:
        """From raw fragments to the states that were asked for."""
        return sum(self.seconds(name) for name in TO_STATE)


class View(Struct, frozen=True):
    """Parameters and what came out."""

    parameters: PlacesParameters
    compared: Compared
    scale: Scale | None


def measured(large: Large, parameters: PlacesParameters, costs: Sequence[StageCost]) -> Scale:
    """Few numbers about each table of the large log."""
    missing = _first(large.gaps.frame.agg(F.coalesce(F.sum(F.col("last") - F.col("first") + 1), F.lit(0))))
    ends = large.taken.frame.groupBy("place").agg((F.max("fragment") + 1).alias("end"))
    wrong = _first(large.hashes.frame.agg(F.coalesce(F.sum((~F.col("right")).cast("bigint")), F.lit(0))))
    whole = _first(large.messages.frame.agg(F.coalesce(F.sum(F.col("whole").cast("bigint")), F.lit(0))))
    verdicts = {
        row.verdict: row["count"] for row in large.verdicts.frame.groupBy("verdict").count().collect()
    }
    growth = large.states.frame.groupBy("message").agg(F.avg("variables").alias("mean")).orderBy("message")
    places = sampled_places(parameters)
    expected = sample(large.log.frame, places, parameters)
    states = large.states.frame.where(F.col("place").isin(places)).collect()
    found = {(row.place, row.message): row.digest for row in states}
    return Scale(
        rows=large.log.rows,
        taken=large.taken.rows,
        missing=missing,
        last=_first(ends.agg(F.sum("end"))),
        generation_faults=large.generations.rows,
        hashes=large.hashes.rows,
        wrong_hashes=wrong,
        verdicts=verdicts,
        whole=whole,
        messages=large.messages.rows,
        sampled=len(expected),
        sampled_wrong=sum(found.get(key) != digest for key, digest in expected.items()),
        growth=tuple((row.message, float(row["mean"])) for row in growth.collect()),
        costs=tuple(costs),
    )


def _first(frame: DataFrame) -> int:
    row = frame.first()
    return 0 if row is None or row[0] is None else int(row[0])
