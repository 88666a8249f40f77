"""Traces as rows of the one schema: lines of nodes are parsed and checked, tables are taken as they are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from linnet.lab.audit.sources import LineFile, Sources
from linnet.lab.stages import schema_of
from linnet.lab.tables import TRACE
from linnet.trace.records import SCHEMA, SCHEMA_VERSION, Kind

HEADER_START = '{"linnet_trace":'
_CORRUPT = "_corrupt"
_IDS = tuple(name for name, kind, _ in SCHEMA if kind == "binary")
_AS_WRITTEN = ", ".join(f"{name} {'string' if kind == 'binary' else kind}" for name, kind, _ in SCHEMA)
LINE_SCHEMA = f"{_AS_WRITTEN}, {_CORRUPT} string"
"""A line as it is parsed: ids are still hex."""
_HEX = "^([0-9a-f]{2})+$"


def microseconds(time: Column) -> Column:
    """A time of a trace as the whole number that it stands for."""
    return F.round(time * 1_000_000).cast("bigint")


def text_lines(spark: SparkSession, files: Sequence[LineFile]) -> DataFrame:
    """Every whole line of these files, with its file and a place that grows within it."""
    uri = F.replace(F.col("_metadata.file_path"), F.lit("+"), F.lit("%2B"))
    lines = (
        spark.read.option("lineSep", "\n")
        .schema("value string")
        .text([str(file.path) for file in files])
        .select(
            F.regexp_replace(F.try_url_decode(uri), "^file:/*", "/").alias("file"),
            F.col("_metadata.file_block_start").alias("block"),
            F.monotonically_increasing_id().alias("place"),
            F.col("value").alias("line"),
        )
    )
    torn = [(str(file.path.resolve()), file.torn) for file in files if file.torn is not None]
    if torn:
        # What is cut short is no line yet. No other row is equal to it: each has a counter of its own.
        cut = spark.createDataFrame(torn, "file string, line string")
        lines = lines.join(F.broadcast(cut), ["file", "line"], "left_anti")
    return lines


def parsed(lines: DataFrame) -> DataFrame:
    """Lines with the row that each holds and, if it cannot be used, the reason why."""
    row = F.from_json("line", LINE_SCHEMA, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT})
    header = F.from_json("line", "linnet_trace int", {"mode": "PERMISSIVE"})
    return (
        lines.withColumn("is_header", F.col("line").startswith(HEADER_START))
        .withColumn("version", F.when(F.col("is_header"), header["linnet_trace"]))
        .withColumn("row", F.when(~F.col("is_header"), row))
        .withColumn("reason", F.when(F.col("is_header"), _header_fault()).otherwise(_row_fault(F.col("row"))))
    )


def _header_fault() -> Column:
    return (
        F.when(F.col("version").isNull(), F.lit("a header that is no JSON"))
        .when(F.col("version") > SCHEMA_VERSION, F.lit("a header of a newer Linnet"))
        .otherwise(F.lit(None))
    )


def _row_fault(row: Column) -> Column:
    """The first thing that is wrong with a row; null if nothing is."""
    kinds = [kind.value for kind in Kind]
    fault = F.when(row.isNull() | row[_CORRUPT].isNotNull(), F.lit("no JSON of this schema"))
    for name, _, nullable in SCHEMA:
        if not nullable:
            fault = fault.when(row[name].isNull(), F.lit(f"no {name}"))
    fault = fault.when(~row["kind"].isin(kinds), F.lit("a kind that is not known"))
    fault = fault.when((row["counter"] < 0) | (row["events"] < 0), F.lit("a negative number"))
    for name in _IDS:
        fault = fault.when(row[name].isNotNull() & ~row[name].rlike(_HEX), F.lit(f"{name} is no hex"))
    return fault.otherwise(F.lit(None))


def good_rows(lines: DataFrame) -> DataFrame:
    """The rows of parsed lines, in the schema of the trace."""
    columns = [
        (F.unhex(F.col(f"row.{name}")) if kind == "binary" else F.col(f"row.{name}")).alias(name)
        for name, kind, _ in SCHEMA
    ]
    return lines.where(~F.col("is_header") & F.col("reason").isNull()).select(*columns)


def table_rows(spark: SparkSession, tables: Sequence[Path]) -> DataFrame:
    """The rows of Parquet files, whose columns were looked at before."""
    return spark.read.schema(schema_of(TRACE)).parquet(*map(str, tables))


def trace_rows(spark: SparkSession, sources: Sources) -> DataFrame:
    """All good rows of all sources."""
    parts = []
    if sources.lines:
        parts.append(good_rows(parsed(text_lines(spark, sources.lines))))
    if sources.tables:
        parts.append(table_rows(spark, sources.tables))
    return reduce(DataFrame.unionAll, parts)
