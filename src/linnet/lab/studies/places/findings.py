"""Lies that were put into random logs, and what the audits say about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]
from msgspec import Struct
from pyspark.sql import DataFrame, SparkSession

from linnet.lab.studies.places import spoken
from linnet.lab.studies.places.answers import GENERATIONS, HASHES
from linnet.lab.studies.places.columns import arrow_of, batch_of
from linnet.lab.tables import Table

TRUTHS = Table(
    "place_truths",
    1,
    "place INT NOT NULL, lie STRING, number BIGINT, lost INT NOT NULL, units INT NOT NULL",
    ("place",),
)
"""What was done to each random log: the lie of its voice and where, fragments that never came."""


class Truth(NamedTuple):
    """What was done to one log."""

    lie: str | None
    number: int | None
    lost: int


class Finding(Struct, frozen=True):
    """What an audit made of one sort of lie."""

    lie: str
    injected: int
    visible: int
    """Those that can be told from what came."""
    found: int
    unexpected: int
    """Findings where nobody lied."""


def truths_of(spark: SparkSession, seed: int, places: int, tasks: int = 4) -> DataFrame:
    """What was done to so many logs. Grain: (place)."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = arrow_of(TRUTHS)
        for batch in batches:
            yield batch_of([(place, *_truth(seed, place)) for place in batch.column(0).to_pylist()], schema)

    return spark.range(0, places, 1, tasks).mapInArrow(task, TRUTHS.columns)


def _truth(seed: int, place: int) -> tuple[str | None, int | None, int, int]:
    log = spoken.log_of(seed, place)
    lie, number = next(iter(log.lies.items()), (None, None))
    return lie, number, log.lost, len(log.units)


def findings(answers: DataFrame, truths: DataFrame) -> list[Finding]:
    """Each audit beside the lies it is for. A place has few such answers: they can be brought here."""
    known = {row.place: Truth(row.lie, row.number, row.lost) for row in truths.collect()}
    told: dict[str, dict[tuple[int, int], str]] = {HASHES: {}, GENERATIONS: {}}
    for row in answers.where(answers.job.isin(HASHES, GENERATIONS)).collect():
        told[row.job][row.place, int(row.key)] = row.answer
    return [_hashes(known, told[HASHES]), _generations(known, told[GENERATIONS])]


def _hashes(known: Mapping[int, Truth], told: Mapping[tuple[int, int], str]) -> Finding:
    """A wrong hash shows if its message counts. A wrong distance may rightly make later hashes wrong."""
    injected = [(place, truth.number) for place, truth in known.items() if truth.lie == spoken.HASH]
    visible = [at for at in injected if at in told]
    wrong = [at for at, answer in told.items() if answer == "false"]
    found = [at for at in visible if told[at[0], at[1] or 0] == "false"]
    unexpected = [at for at in wrong if at not in injected and known[at[0]].lie != spoken.DELTA]
    return Finding(spoken.HASH, len(injected), len(visible), len(found), len(unexpected))


def _generations(known: Mapping[int, Truth], told: Mapping[tuple[int, int], str]) -> Finding:
    """Where something is missing it may have been a removal: then a step more shows nothing."""
    lying = {place for place, truth in known.items() if truth.lie == spoken.GENERATION}
    visible = {place for place in lying if not known[place].lost}
    found = {place for place, _ in told} & visible
    unexpected = [at for at in told if at[0] not in lying]
    return Finding(spoken.GENERATION, len(lying), len(visible), len(found), len(unexpected))
