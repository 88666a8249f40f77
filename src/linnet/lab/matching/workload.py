"""Events and subscriptions as rows: drawn for each number by itself, whatever machine does it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from linnet.content.predicate import MOST_ATTRIBUTES, read_attributes
from linnet.lab.matching.columns import PREDICATES, PREDICATES_ARROW, RECORDS, batch_of
from linnet.lab.matching.drawn import draw_records
from linnet.lab.matching.streams import Harvest, read_streams
from linnet.lab.matching.subscribing import Widths, draw_predicate
from linnet.sim.seeded_random import named_luck


def harvest_of(data: str, seed: int) -> Harvest:
    """The records of a folder, or drawn ones; some ten thousand, so the driver has them."""
    return read_streams(Path(data)) if data else draw_records(seed)


def records_frame(spark: SparkSession, harvest: Harvest) -> DataFrame:
    """Records, numbered. Grain: that of `RECORDS`."""
    rows = [(number, stream, found.text) for number, (stream, found) in enumerate(harvest.records)]
    return spark.createDataFrame(rows, RECORDS.columns)


def events_frame(records: DataFrame, count: int, number: int, seed: int) -> DataFrame:
    """So many events, each one of so many records, drawn with replacement. Grain: that of `EVENTS`."""
    return _drawn(records, "event", count, number, seed).select("event", "attributes")


def predicates_frame(records: DataFrame, count: int, number: int, widths: Widths, seed: int) -> DataFrame:
    """So many subscriptions, each around one of so many records. Grain: that of `PREDICATES`."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = []
            for each, stream, text in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                luck = named_luck(seed, f"matching/subscription/{each}")
                around = read_attributes(text, MOST_ATTRIBUTES)
                rows.append((each, draw_predicate(stream, around, widths, luck).text))
            yield batch_of(rows, PREDICATES_ARROW)

    drawn = _drawn(records, "subscription", count, number, seed)
    return drawn.select("subscription", "stream", "attributes").mapInArrow(work, PREDICATES.columns)


def _drawn(records: DataFrame, name: str, count: int, number: int, seed: int) -> DataFrame:
    numbered = records.sparkSession.range(count).withColumnRenamed("id", name)
    return numbered.withColumn("record", _record(name, number, seed)).join(F.broadcast(records), "record")


def _record(name: str, number: int, seed: int) -> Column:
    return F.pmod(F.xxhash64(F.lit(f"{seed}/{name}"), F.col(name)), F.lit(number))
