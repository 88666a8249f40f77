"""Events and predicates brought together piece by piece, each piece with an index of its own.

Rows of a piece come sorted, predicates first: a task builds the shipped index of one piece at a time and
lets the events go by. So its memory is that of one piece, however many events there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from linnet.content.matching_index import Index
from linnet.content.predicate import MOST_ATTRIBUTES, read_attributes, read_predicate
from linnet.lab.matching.columns import (
    HOMES,
    HOMES_ARROW,
    MATCHES,
    MATCHES_ARROW,
    PLACED,
    PLACED_ARROW,
    ROUTED_ARROW,
    batch_of,
)
from linnet.lab.matching.homes import Plan, Rarity, Settlement, keys_of, place_of

BEGINS = 255
"""Places at which an attribute may be cut."""
_ROUTED = "piece INT, event BIGINT, attributes STRING"
_PREDICATE, _EVENT = 0, 1
Row = tuple[int, int, int, str]
"""Piece, side, number, text."""


def homes_of(predicates: DataFrame, rarity: Rarity) -> DataFrame:
    """Where each predicate lives. Grain: that of `HOMES`."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = []
            for number, text in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                name, condition = rarity.home(read_predicate(text, MOST_ATTRIBUTES))
                rows.append((number, text, *place_of(name, condition), *keys_of(condition)))
            yield batch_of(rows, HOMES_ARROW)

    return predicates.select("subscription", "predicate").mapInArrow(work, HOMES.columns)


def settlements_of(homes: DataFrame) -> list[Settlement]:
    """How many live where: a row for each attribute, of which there are few beside predicates."""
    shares = [place / (BEGINS + 1) for place in range(BEGINS + 1)]
    found = homes.groupBy("name", "kind").agg(
        F.count(F.lit(1)).alias("predicates"),
        F.percentile_approx("low", shares, 10_000).alias("begins"),
    )
    return [Settlement(row.name, row.kind, row.predicates, tuple(row.begins)) for row in found.collect()]


def placed_of(homes: DataFrame, plan: Plan) -> DataFrame:
    """Each predicate in its piece or pieces. Grain: that of `PLACED`."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = []
            for number, text, name, kind, low, high in zip(
                *(column.to_pylist() for column in batch.columns), strict=True
            ):
                pieces = plan.homes[name, kind].of_range(low, high, number)
                rows += [(piece, number, text) for piece in pieces]
            yield batch_of(rows, PLACED_ARROW)

    return homes.select(*HOMES_ARROW.names).mapInArrow(work, PLACED.columns)


def routed_of(events: DataFrame, plan: Plan) -> DataFrame:
    """Each event at every piece where somebody may want it. Grain: (piece, event)."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = []
            for number, text in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                pieces = plan.of_event(read_attributes(text, MOST_ATTRIBUTES))
                rows += [(piece, number, text) for piece in pieces]
            yield batch_of(rows, ROUTED_ARROW)

    return events.select("event", "attributes").mapInArrow(work, _ROUTED)


def matches_of(placed: DataFrame, routed: DataFrame, tasks: int) -> DataFrame:
    """Who gets what. Grain: that of `MATCHES`."""
    asked = placed.select(
        "piece", F.lit(_PREDICATE).alias("side"), F.col("subscription").alias("number"), "predicate"
    )
    said = routed.select("piece", F.lit(_EVENT).alias("side"), F.col("event").alias("number"), "attributes")
    sorted_rows = (
        asked.union(said).repartition(tasks, "piece").sortWithinPartitions("piece", "side", "number")
    )

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        piece = Piece()
        for batch in batches:
            columns = (column.to_pylist() for column in batch.columns)
            yield batch_of(list(piece.pass_by(zip(*columns, strict=True))), MATCHES_ARROW)

    return sorted_rows.mapInArrow(work, MATCHES.columns)


class Piece:
    """One piece after the other, as their rows come."""

    def __init__(self) -> None:
        self._piece = -1
        self._index: Index[int] = Index()

    def pass_by(self, rows: Iterable[Row]) -> Iterator[tuple[int, int, list[int]]]:
        """Take predicates in, and tell for each event who wants it, if somebody does."""
        for piece, side, number, text in rows:
            if piece != self._piece:
                self._piece, self._index = piece, Index()
            if side == _PREDICATE:
                self._index.add(number, read_predicate(text, MOST_ATTRIBUTES))
            elif len(self._index):
                found = self._index.matching(read_attributes(text, MOST_ATTRIBUTES))
                if found:
                    yield number, piece, sorted(found)
