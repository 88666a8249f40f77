"""Which simulations are run: each is a row, and rows that take longest come first."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import astuple
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from linnet.lab.studies.streams.graphs import GROWN, KINDS, SAMPLED
from linnet.lab.studies.streams.parameters import (
    AT_ONCE,
    AWARE,
    AWARE_FOR,
    HELD,
    HOLD,
    LIVE,
    MEASURED_AT,
    NAIVE,
    PLAIN,
    THROTTLED,
    StreamsParameters,
)
from linnet.overlay.config import Control
from linnet.sim.links import LatencyTable
from linnet.sim.streams.world import FIRST_JOIN, StreamScenario

_NAIVE = (NAIVE, AT_ONCE, LIVE)

_APART = 2
"""Mean delays of the underlay between two events. Floods overlap, which changes nothing where links carry
any number of messages at once, and spares the simulation of idle seconds."""

LARGE = (4096, 6400, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000)
"""Sizes beyond the simulated ones; the source speaks of 6,400 and 10,000."""

SWEPT = 512
"""The largest size at which diameters of several degrees are looked at."""

LIVE_SIZE = 128
"""The largest size at which the naive protocol is also run with a tracker that goes on."""
FEW, MANY = 3, 10
"""Repeats at most of what is only looked at beside, and of graphs without nodes."""


class Case(Struct, frozen=True):
    """One simulation, or one graph."""

    mode: str
    size: int
    degree: int
    repeat: int
    seed: int
    join_ms: int = 0
    """Milliseconds between joins."""
    messages: int = 0
    sources: int = 0
    """Sources of shortest paths in a graph; 0: all."""


COLUMNS = (
    "mode STRING NOT NULL, size INT NOT NULL, degree INT NOT NULL, repeat INT NOT NULL, "
    "seed BIGINT NOT NULL, join_ms INT NOT NULL, messages INT NOT NULL, sources INT NOT NULL"
)
_KINDS = [column.split()[1] for column in COLUMNS.split(", ")]


def seed_of(seed: int, name: str, repeat: int) -> int:
    """A seed of its own for each repeat of each name; modes share it, and so where nodes are."""
    digest = hashlib.sha256(f"linnet/lab/streams/{seed}/{name}/{repeat}".encode()).digest()
    return int.from_bytes(digest[:4], "big")


def main_cases(parameters: StreamsParameters, mode: str, size: int) -> list[Case]:
    """The repeats of one size in one mode."""
    throttled = mode == NAIVE and size > THROTTLED
    return [
        Case(
            mode,
            size,
            parameters.degree,
            repeat,
            seed_of(parameters.seed, f"overlay/{size}", repeat),
            join_ms=round(parameters.throttle * 1000) if throttled else 0,
            messages=parameters.messages,
        )
        for repeat in range(parameters.repeats_of(mode, size))
    ]


def beside_cases(parameters: StreamsParameters) -> list[Case]:
    """The naive protocol once without the throttle that it has otherwise, and with a tracker that goes on."""
    if NAIVE not in parameters.modes:
        return []
    at_once = [size for size in parameters.ordered if size > THROTTLED][:1]
    live = [size for size in reversed(parameters.ordered) if size <= LIVE_SIZE][:1]
    wanted = [(AT_ONCE, size, 1) for size in at_once]
    wanted += [(LIVE, size, min(FEW, parameters.repeats)) for size in live]
    return [
        Case(
            mode,
            size,
            parameters.degree,
            repeat,
            seed_of(parameters.seed, f"overlay/{size}", repeat),
            messages=parameters.messages,
        )
        for mode, size, repeats in wanted
        for repeat in range(repeats)
    ]


def redundancy_cases(parameters: StreamsParameters) -> list[Case]:
    """One size with several degrees, with and without suppression."""
    size = parameters.redundancy_size
    return [
        Case(
            mode,
            size,
            degree,
            repeat,
            seed_of(parameters.seed, f"overlay/{size}", repeat),
            messages=parameters.messages,
        )
        for degree in sorted(parameters.degrees, reverse=True)
        for mode in (PLAIN, HELD)
        for repeat in range(min(FEW, parameters.repeats))
    ]


def graph_cases(parameters: StreamsParameters) -> list[Case]:
    """Graphs without nodes: all kinds at the study's sizes, and small ones of several degrees."""
    sizes = parameters.ordered
    wanted = [
        (kind, size, parameters.degree, repeat)
        for size in sizes
        for kind in KINDS
        for repeat in range(min(MANY if size <= SWEPT else FEW, parameters.repeats))
    ]
    others = [degree for degree in parameters.degrees if degree != parameters.degree]
    small = [size for size in sizes if size <= SWEPT]
    wanted += [(GROWN, size, degree, 0) for size in small for degree in others if degree < size]
    return [
        Case(kind, size, degree, repeat, seed_of(parameters.seed, f"overlay/{size}", repeat))
        for kind, size, degree, repeat in sorted(wanted, key=lambda each: -each[1] * each[2])
    ]


def large_cases(parameters: StreamsParameters) -> list[Case]:
    """Graphs larger than any simulation, from sampled sources."""
    sizes = {size for size in (*LARGE, parameters.large) if max(parameters.sizes) < size <= parameters.large}
    return [
        Case(
            SAMPLED,
            size,
            parameters.degree,
            repeat,
            seed_of(parameters.seed, f"overlay/{size}", repeat),
            sources=parameters.sources,
        )
        for size in sorted(sizes, reverse=True)
        for repeat in range(min(FEW, parameters.repeats))
    ]


def scenario_of(case: Case, latency: LatencyTable) -> StreamScenario:
    """What the simulator is asked for a case.

    Overlays that go on changing are measured as they are at a stated time: the tracker falls silent then,
    so that all events flood the same graph, which is also the one that is estimated.
    """
    join = case.join_ms / 1000
    naive = case.mode in _NAIVE
    limit = MEASURED_AT if naive else AWARE_FOR
    return StreamScenario(
        nodes=case.size,
        degree=case.degree,
        control=Control.NAIVE if naive else Control.COUNTER,
        near=case.mode == AWARE,
        latency=latency,
        messages=case.messages,
        seed=case.seed,
        join=join,
        gap=_APART * latency.mean(),
        suppress=HOLD if case.mode == HELD else 0.0,
        still=case.mode in (NAIVE, AT_ONCE, AWARE),
        settle_limit=max(1.0, limit - FIRST_JOIN - (case.size - 1) * join),
    )


def cases_frame(spark: SparkSession, cases: Sequence[Case]) -> DataFrame:
    """Cases as rows, each a task of its own, in their order. Grain: one row per case."""
    rows = F.array(*(_row(case) for case in cases))
    numbered = spark.range(0, len(cases), 1, len(cases))
    return numbered.select(F.element_at(rows, (F.col("id") + 1).cast("int")).alias("case")).select("case.*")


def _row(case: Case) -> Column:
    names = Case.__struct_fields__
    values: Iterable[tuple[str, str, object]] = zip(names, _KINDS, astuple(case), strict=True)
    return F.struct(*(F.lit(value).cast(kind).alias(name) for name, kind, value in values))
