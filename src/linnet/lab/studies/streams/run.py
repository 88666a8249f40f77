"""Simulations as tasks: each gives whole numbers, in rows of `STREAM_COUNTS`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from linnet.lab.studies.streams.graphs import measure_graph, pair_counts
from linnet.lab.studies.streams.workload import Case, cases_frame, scenario_of
from linnet.lab.tables import STREAM_COUNTS, STREAM_PAIRS
from linnet.sim.links import LatencyTable
from linnet.sim.streams.tally import tally_streams

Measures: TypeAlias = Mapping[str, Mapping[int, int]]
"""Counts by bin for each measure; a sum is in bin 0."""

HASHED = 256
"""Nodes up to which the first repeat also tells the hash of its trace."""

_BLOCKS = 16
"""Tasks that share the graphs whose randomness is looked at."""

_ARROW = pa.schema(
    [
        ("mode", pa.string()),
        ("size", pa.int32()),
        ("degree", pa.int32()),
        ("repeat", pa.int32()),
        ("measure", pa.string()),
        ("bin", pa.int32()),
        ("count", pa.int64()),
    ]
)


def measured(spark: SparkSession, cases: Sequence[Case], measure: Callable[[Case], Measures]) -> DataFrame:
    """What comes of each case. Grain: that of `STREAM_COUNTS`."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                case = Case(**row)
                yield to_arrow(case, measure(case))

    return cases_frame(spark, cases).mapInArrow(work, STREAM_COUNTS.columns)


def simulated(spark: SparkSession, cases: Sequence[Case], latency: LatencyTable) -> DataFrame:
    """The shipped machines over these cases."""
    return measured(spark, cases, lambda case: simulate(case, latency))


def simulate(case: Case, latency: LatencyTable) -> Measures:
    """One simulation."""
    tally = tally_streams(scenario_of(case, latency), hashed=case.repeat == 0 and case.size <= HASHED)
    return {
        **{name: {0: total} for name, total in tally.totals.items()},
        "delay_ms": tally.delays,
        "hops": tally.hops,
        "hop_delay": tally.hop_delays,
        "degrees": tally.degrees,
    }


def to_arrow(case: Case, measures: Measures) -> pa.RecordBatch:
    """The rows of one case."""
    rows = [(measure, bin, count) for measure, counts in measures.items() for bin, count in counts.items()]
    named = [case.mode, case.size, case.degree, case.repeat]
    columns = [[value] * len(rows) for value in named] + [list(column) for column in zip(*rows, strict=True)]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)


def modelled(spark: SparkSession, cases: Sequence[Case], latency: LatencyTable) -> DataFrame:
    """Shortest paths over graphs of these cases."""

    def measure(case: Case) -> Measures:
        return measure_graph(case.mode, case.size, case.degree, case.seed, latency, case.sources)

    return measured(spark, cases, measure)


def neighbored(spark: SparkSession, nodes: int, degree: int, seeds: Sequence[int]) -> DataFrame:
    """How often each pair of joiners is linked over many graphs. Grain: (a, b), with a < b, all of them."""
    blocks = [list(seeds[at::_BLOCKS]) for at in range(min(_BLOCKS, len(seeds)))]

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for block in batch["id"].to_pylist():
                yield _pairs(pair_counts(nodes, degree, blocks[block]))

    rows = spark.range(0, len(blocks), 1, len(blocks)).mapInArrow(work, STREAM_PAIRS.columns)
    return rows.groupBy("a", "b").agg(F.sum("graphs").alias("graphs"))


def _pairs(counts: NDArray[np.int64]) -> pa.RecordBatch:
    a, b = np.triu_indices(len(counts), k=1)
    columns = [pa.array(a, pa.int32()), pa.array(b, pa.int32()), pa.array(counts[a, b], pa.int64())]
    return pa.RecordBatch.from_arrays(columns, names=["a", "b", "graphs"])
