"""Runs as tasks of Spark: each gives whole numbers, in rows of `POINTS`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import psutil
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

from linnet.content.config import ContentConfig
from linnet.lab.studies.content.columns import ARROW, POINTS
from linnet.lab.studies.content.workload import LONG, REPLICATION, Case
from linnet.sim.content.rounds import LONG_REFRESH, long_rounds, replication_rounds, run_rounds
from linnet.sim.content.scenario import ContentScenario, Course, Variant, run_content
from linnet.trace.columns import ColumnTrace
from linnet.trace.records import Kind, Row

LATENCY, SUBSCRIBING, PROCESSOR, MEMORY = "latency_us", "subscribing_us", "processor_us", "memory_bytes"
HOPS, MESSAGES, MOST_FILTERS, FILTERS = "hops", "messages", "most_filters", "filters"
EXPECTED, MISSING, DUPLICATED, UNASKED = "expected", "missing", "duplicated", "unasked"
UNSETTLED, DISAGREEING = "unsettled", "disagreeing"

Histogram = Mapping[int, int]
Point = tuple[int, str, int, int]
"""Stage, metric, value, count."""


class Meter:
    """Processor time and memory of this process, since it began or was set back."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self.set_back()
        self.processor = 0.0
        """Seconds that it took, as far as it was asked."""
        self.memory = 0
        """Bytes that it takes more than before; less than 0 where others were given back meanwhile."""

    def set_back(self) -> None:
        """Begin anew."""
        self._processor = time.process_time()
        self._memory = self._process.memory_info().rss

    def __call__(self, done: float = 0.0, what: str = "") -> None:
        """As `run_content` tells how far it is: the last time, all nodes are still there."""
        self.processor = time.process_time() - self._processor
        self.memory = self._process.memory_info().rss - self._memory


def points_of(spark: SparkSession, cases: Sequence[Case]) -> DataFrame:
    """What comes of each case. Grain: that of `POINTS`."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield to_arrow(cases[number], measure(cases[number]))

    return spark.range(0, len(cases), 1, max(1, len(cases))).mapInArrow(work, POINTS.columns)


def measure(case: Case) -> list[Point]:
    """One run."""
    return _in_rounds(case) if case.scenario in (REPLICATION, LONG) else _in_one_piece(case)


def _in_rounds(case: Case) -> list[Point]:
    """A run of several rounds, each of which is a stage."""
    meter, costs = Meter(), list[tuple[int, int]]()

    def mark(stage: int) -> None:
        meter()
        costs.append(_costs(meter, case))
        meter.set_back()

    refresh = LONG_REFRESH if case.scenario == LONG else ContentConfig().refresh
    config = ContentConfig(
        reliable=case.variant.endswith("-reliable"),
        redirect=case.variant.startswith("redirect-"),
        backups=case.f,
        refresh=refresh,
    )
    make = long_rounds if case.scenario == LONG else replication_rounds
    reports = run_rounds(case.nodes, case.seed, config, make(case.nodes, case.seed), mark)
    points: list[Point] = []
    for stage, (report, (processor, memory)) in enumerate(zip(reports, costs, strict=True), 1):
        singles = {
            EXPECTED: report.expected,
            MISSING: report.missing,
            DUPLICATED: report.duplicated,
            UNASKED: report.unasked,
            MESSAGES: report.messages,
            FILTERS: report.filters,
            PROCESSOR: processor,
            MEMORY: memory,
        }
        points += [(stage, metric, value, 1) for metric, value in singles.items()]
        points += _told(stage, LATENCY, report.latencies)
        if config.reliable:
            points += _told(stage, SUBSCRIBING, report.subscribing)
    return points


def _costs(meter: Meter, case: Case) -> tuple[int, int]:
    """Microseconds and bytes of one node."""
    return round(1_000_000 * meter.processor / case.nodes), meter.memory // case.nodes


def _in_one_piece(case: Case) -> list[Point]:
    trace, meter = ColumnTrace(), Meter()
    scenario = ContentScenario(
        nodes=case.nodes,
        variant=Variant(case.variant),
        course=Course(case.scenario),
        backups=case.f,
        seed=case.seed,
    )
    report = run_content(scenario, trace, meter)
    processor, memory = _costs(meter, case)
    singles = {
        EXPECTED: report.expected,
        MISSING: report.missing,
        DUPLICATED: round(report.duplicates_share * report.expected),
        UNASKED: report.false_positives,
        UNSETTLED: report.unsettled,
        DISAGREEING: report.rendezvous_disagreements,
        MESSAGES: report.messages,
        MOST_FILTERS: report.most_filters,
        PROCESSOR: processor,
        MEMORY: memory,
    }
    points = [(0, metric, value, 1) for metric, value in singles.items()]
    latencies, hops = deliveries(trace.rows())
    return [*points, *_told(0, LATENCY, latencies), *_told(0, HOPS, hops)]


def deliveries(rows: Iterator[Row]) -> tuple[Histogram, Histogram]:
    """Microseconds from an event's birth until each node has it first, and links on the way."""
    born: dict[bytes, float] = {}
    had: set[tuple[bytes, bytes]] = set()
    latencies, hops = Counter[int](), Counter[int]()
    for row in rows:
        if row.event is None:
            continue
        if row.kind == Kind.PUBLISHED:
            born[row.event] = row.time
        elif row.kind == Kind.DELIVERED and (row.node, row.event) not in had:
            had.add((row.node, row.event))
            latencies[round(1_000_000 * (row.time - born[row.event]))] += 1
            hops[row.hops or 0] += 1
    return latencies, hops


def _told(stage: int, metric: str, histogram: Histogram) -> list[Point]:
    return [(stage, metric, value, count) for value, count in sorted(histogram.items())]


def to_arrow(case: Case, points: Sequence[Point]) -> pa.RecordBatch:
    """The rows of one case."""
    rows = [
        (case.scenario, case.variant, case.nodes, case.f, stage, case.repeat, metric, value, count)
        for stage, metric, value, count in points
    ]
    arrays = [
        pa.array(list(column), field.type)
        for column, field in zip(zip(*rows, strict=True), ARROW, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW)
