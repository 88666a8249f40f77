"""Pieces read by tasks of Spark, each from its beginning to its end, into rows and rows that are bad.

A piece is one task's work: only so has every bad row its line number, also in packed files. A batch is
bounded, whatever the size of a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from linnet.lab.sources.pieces import Piece
from linnet.lab.sources.rows import Bad, Entry, storable
from linnet.lab.tables import QUARANTINE, Table

BATCH_ROWS = 8192
MOST_TASKS = 512
CONTENT_CHARS = 200

_WHERE = "file STRING, line BIGINT, reason STRING, content STRING"
_ARROW = {"string": pa.string(), "bigint": pa.int64(), "int": pa.int32()}

Reading = Callable[[Piece], Iterator[Entry | Bad]]


def harvest(spark: SparkSession, pieces: Sequence[Piece], read: Reading, columns: str) -> DataFrame:
    """All that is found: a row of `columns`, or none of them and a reason.

    Grain: one row for each thing that a piece came to, with its file and line.
    """
    loose = columns.replace(" NOT NULL", "")
    schema = StructType.fromDDL(f"{loose}, {_WHERE}")
    assert isinstance(schema, StructType)  # noqa: S101 - for mypy: columns are no single type
    arrow = pa.schema([pa.field(field.name, _ARROW[field.dataType.simpleString()]) for field in schema])
    kept = tuple(pieces)

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        numbers = (number for batch in batches for number in batch.column(0).to_pylist())
        yield from found_batches((kept[number] for number in numbers), read, arrow)

    tasks = min(len(kept), MOST_TASKS)
    return spark.range(0, len(kept), 1, tasks).mapInArrow(work, schema)


def found_batches(pieces: Iterable[Piece], read: Reading, arrow: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Batches of bounded size over pieces, however many there are and however large."""
    width = len(arrow) - 4
    nothing = (None,) * width
    rows = (
        (*found.values, piece.shown, found.line, None, None)
        if isinstance(found, Entry)
        else (*nothing, piece.shown, found.line, found.reason, storable(found.content[:CONTENT_CHARS]))
        for piece in pieces
        for found in read(piece)
    )
    while batch := list(islice(rows, BATCH_ROWS)):
        columns = zip(*batch, strict=True)
        arrays = [pa.array(values, field.type) for values, field in zip(columns, arrow, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=arrow)


def good_rows(found: DataFrame, table: Table) -> DataFrame:
    """The rows of a table, at the table's own grain."""
    names = [name.split()[0] for name in table.columns.split(", ")]
    return found.where(F.col("reason").isNull()).select(*names)


def bad_rows(found: DataFrame, source: str) -> DataFrame:
    """The rows for the quarantine, ordered by file and line in few files."""
    named = found.where(F.col("reason").isNotNull()).withColumn("source", F.lit(source))
    columns = [name.split()[0] for name in QUARANTINE.columns.split(", ")]
    return named.select(*columns).repartition("file").sortWithinPartitions("file", "line")


def without_repeats(found: DataFrame, key: Sequence[str], reason: str) -> DataFrame:
    """The same rows; of those with the same key only the first line is good, later ones get the reason."""
    place = F.struct("file", "line")
    first = F.min(place).over(Window.partitionBy(*key))
    good = found.where(F.col("reason").isNull()).withColumn("first", first)
    marked = good.withColumn("reason", F.when(place != F.col("first"), F.lit(reason)))
    marked = marked.withColumn("content", F.when(F.col("reason").isNotNull(), F.lit(""))).drop("first")
    return marked.unionByName(found.where(F.col("reason").isNotNull()))
