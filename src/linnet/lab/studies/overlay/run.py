"""Runs as tasks of Spark: each gives whole numbers, in rows of `OVERLAY_COUNTS`."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias, TypeVar

import msgspec
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

from linnet.lab.studies.overlay.attacks import SamplingPlan, measure_attack
from linnet.lab.studies.overlay.bounds import BOUNDS, BoundsPlan, measure_bounds
from linnet.lab.studies.overlay.choosing import ChoosingPlan, measure_choosing
from linnet.lab.studies.overlay.data import Surroundings
from linnet.lab.studies.overlay.filters import PPM, FilterPlan, measure_filters
from linnet.lab.studies.overlay.living import LivingPlan, interests_of, measure_living
from linnet.lab.studies.overlay.mending import MendingPlan, measure_mending
from linnet.lab.studies.overlay.parameters import SYNTHETIC
from linnet.lab.studies.overlay.workload import (
    CHOOSING,
    DEGREES,
    FILTERS,
    LIVING,
    MENDING,
    RINGS,
    SAMPLING,
    SCALE,
    Case,
    cases_frame,
)
from linnet.lab.tables import OVERLAY_COUNTS
from linnet.sim.overlay.ring_dissemination import RingPlan, spread_over_ring

P = TypeVar("P")
Measures: TypeAlias = Mapping[str, Mapping[int, int]]
"""Counts by bin for each measure; a single number is in bin 0."""
_FILTER_TOPICS = 30
"""Topics of a user whose filter is compared, where interests are drawn."""

_ARROW = pa.schema(
    [
        ("experiment", pa.string()),
        ("setting", pa.string()),
        ("repeat", pa.int32()),
        ("measure", pa.string()),
        ("bin", pa.int32()),
        ("count", pa.int64()),
    ]
)


def measured(spark: SparkSession, cases: Sequence[Case], around: Surroundings, users: int) -> DataFrame:
    """What comes of each case. Grain: that of `OVERLAY_COUNTS`."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                case = Case(**row)
                yield to_arrow(case, measure(case, around, users))

    return cases_frame(spark, cases).mapInArrow(work, OVERLAY_COUNTS.columns)


def measure(case: Case, around: Surroundings, users: int) -> Measures:
    """One run; `users` is how many are compared by filters."""
    return _EXPERIMENTS[case.experiment](case, around, users)


def _sampling(case: Case, around: Surroundings, users: int) -> Measures:
    return measure_attack(_plan(case, SamplingPlan), case.seed)


def _filters(case: Case, around: Surroundings, users: int) -> Measures:
    origin = case.setting.partition("|")[0]
    drawn = LivingPlan(origin, users, 20 * _FILTER_TOPICS, _FILTER_TOPICS, 1)
    interests = interests_of(drawn, case.seed, around) if origin == SYNTHETIC else around.profiles[origin]
    return _singles(measure_filters(_plan(case, FilterPlan), interests[:users], case.seed))


def _rings(case: Case, around: Surroundings, users: int) -> Measures:
    found = spread_over_ring(_plan(case, RingPlan))
    return _singles(
        {
            "expected": found.expected,
            "reached": found.reached,
            "hops": found.hops,
            "max_hops": found.max_hops,
            "copies": found.copies,
            "hit_ratio": round(PPM * found.hit_ratio),
        }
    )


def _living(case: Case, around: Surroundings, users: int) -> Measures:
    return _singles(measure_living(_plan(case, LivingPlan), case.seed, around))


def _scale(case: Case, around: Surroundings, users: int) -> Measures:
    """With time and memory: those of this machine, as it was."""
    began = time.monotonic()
    found = measure_living(_plan(case, LivingPlan), case.seed, around)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return _singles(found | {"seconds": round(time.monotonic() - began), "memory_mb": memory})


def _mending(case: Case, around: Surroundings, users: int) -> Measures:
    return _singles(measure_mending(_plan(case, MendingPlan), case.seed, around))


def _choosing(case: Case, around: Surroundings, users: int) -> Measures:
    return _singles(measure_choosing(_plan(case, ChoosingPlan), case.seed, around))


def _bounds(case: Case, around: Surroundings, users: int) -> Measures:
    return measure_bounds(_plan(case, BoundsPlan))


_EXPERIMENTS: dict[str, Callable[[Case, Surroundings, int], Measures]] = {
    SAMPLING: _sampling,
    FILTERS: _filters,
    RINGS: _rings,
    LIVING: _living,
    DEGREES: _living,
    MENDING: _mending,
    CHOOSING: _choosing,
    BOUNDS: _bounds,
    SCALE: _scale,
}


def _plan(case: Case, kind: type[P]) -> P:
    return msgspec.json.decode(case.plan, type=kind)


def _singles(numbers: Mapping[str, int]) -> Measures:
    return {name: {0: value} for name, value in numbers.items()}


def to_arrow(case: Case, measures: Measures) -> pa.RecordBatch:
    """The rows of one case."""
    rows = [(name, bin, count) for name, counts in measures.items() for bin, count in counts.items()]
    named = [case.experiment, case.setting, case.repeat]
    columns = [[value] * len(rows) for value in named] + [list(column) for column in zip(*rows, strict=True)]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)
