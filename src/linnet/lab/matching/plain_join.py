"""The plain way: every event beside every predicate, and the condition decides. Spark alone does it."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from linnet.content.attribute_types.geo_box import Box
from linnet.content.attribute_types.text import Topic, Words
from linnet.content.predicate import MOST_ATTRIBUTES, Condition, read_predicate
from linnet.lab.matching.columns import WRITTEN, WRITTEN_ARROW, batch_of

Part = dict[str, object]


def written_of(texts: DataFrame) -> DataFrame:
    """Predicates, or events, taken apart: their number and their text are the first columns. Grain: id."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = [
                (number, [part_of(*pair) for pair in read_predicate(text, MOST_ATTRIBUTES).conditions])
                for number, text in zip(*(column.to_pylist() for column in batch.columns), strict=True)
            ]
            yield batch_of(rows, WRITTEN_ARROW)

    return texts.select(texts.columns[:2]).mapInArrow(work, WRITTEN.columns)


def part_of(name: str, condition: Condition) -> Part:
    """One condition as columns."""
    part: Part = {"name": name, "kind": type(condition).__name__}
    if isinstance(condition, Topic):
        return part
    if isinstance(condition, Words):
        return part | {"text": condition.begins, "high_open": not condition.whole}
    if isinstance(condition, Box):
        edges = {"low": condition.south, "high": condition.north}
        return part | edges | {"west": condition.west, "east": condition.east}
    return part | {
        "low": condition.low,
        "high": condition.high,
        "low_open": condition.low_open,
        "high_open": condition.high_open,
    }


def plain_pairs(events: DataFrame, predicates: DataFrame) -> DataFrame:
    """Every event with every predicate that accepts it, both written. Grain: that of `PAIRS`."""
    said = events.select(F.col("id").alias("event"), F.col("conditions").alias("values"))
    asked = predicates.select(F.col("id").alias("subscription"), "conditions")
    accepted = F.forall("conditions", lambda one: F.exists("values", lambda value: _accepts(one, value)))
    return said.crossJoin(asked).where(accepted).select("event", "subscription")


def _accepts(one: Column, value: Column) -> Column:
    kind = one["kind"]
    above = (one["low"] < value["low"]) | ((one["low"] == value["low"]) & ~one["low_open"])
    below = (value["high"] < one["high"]) | ((value["high"] == one["high"]) & ~one["high_open"])
    east_of, west_of = one["west"] <= value["west"], value["east"] <= one["east"]
    # West of a box that crosses the line at 180 degrees is the greater number.
    wide = F.when(one["west"] <= one["east"], east_of & west_of).otherwise(east_of | west_of)
    box = (one["low"] <= value["low"]) & (value["high"] <= one["high"]) & wide
    words = F.when(one["high_open"], value["text"].startswith(one["text"])).otherwise(
        value["text"] == one["text"]
    )
    holds = (
        F.when(kind == Topic.__name__, F.lit(True))
        .when(kind == Words.__name__, words)
        .when(kind == Box.__name__, box)
        .otherwise(above & below)
    )
    return (one["name"] == value["name"]) & (kind == value["kind"]) & holds
