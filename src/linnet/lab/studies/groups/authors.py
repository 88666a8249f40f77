"""The raw measurements of the published benchmark, as its authors give them: two tables of all single runs.

``traffic.csv`` has the bytes that all clients sent, ``time.csv.gz`` the milliseconds of each client; the
columns of the set-up are those of a creation (Weidner et al. 2021, evaluation).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from linnet.lab.errors import LabError
from linnet.lab.stages import Workshop, file_input
from linnet.lab.tables import GROUP_AUTHORS

TRAFFIC, TIME = "traffic.csv", "time.csv.gz"
_TRAFFIC = (
    "groupsize INT, protocol STRING, operation STRING, setupsentbytes DOUBLE, operationsentbytes DOUBLE"
)
_TIME = (
    "groupsize INT, protocol STRING, operation STRING, clientrole STRING, setuptime DOUBLE, "
    "operationtime DOUBLE"
)


class Seen(Struct, frozen=True):
    """What all runs of an operation and size came to: bytes, or nanoseconds."""

    runs: int
    total: int
    least: int
    most: int

    @property
    def mean(self) -> float:
        """Of all runs."""
        return self.total / self.runs


Authors = Mapping[tuple[str, int, str], Seen]
"""By operation, size, and ``bytes``, ``sender`` or ``recipient``."""


def find_authors(folder: Path) -> Path | None:
    """Where both files lie together: in this folder, or below it."""
    for traffic in (folder / TRAFFIC, *sorted(folder.rglob(TRAFFIC))):
        if traffic.is_file() and (traffic.parent / TIME).is_file():
            return traffic.parent
    return None


def read_authors(workshop: Workshop, folder: Path) -> Authors:
    """Both tables, added up by operation and size; `LabError` if they are others than these."""
    for name, columns in ((TRAFFIC, _TRAFFIC), (TIME, _TIME)):
        _check_header(workshop.spark, folder / name, columns)
    made = workshop.stage(
        "authors",
        GROUP_AUTHORS,
        lambda: summed(
            _read(workshop.spark, folder / TRAFFIC, _TRAFFIC), _read(workshop.spark, folder / TIME, _TIME)
        ),
        inputs=[file_input(folder / TRAFFIC), file_input(folder / TIME)],
    )
    return {
        (row.operation, row.size, row.what): Seen(row.runs, row.total, row.least, row.most)
        for row in made.frame.toLocalIterator()
    }


def summed(traffic: DataFrame, time: DataFrame) -> DataFrame:
    """Single runs added up. Grain: (operation, size, what)."""
    sent = F.lit("bytes").alias("what")
    role = F.lower("clientrole").alias("what")
    parts = [
        _values(traffic, sent, F.col("operation"), F.col("operationsentbytes")),
        _values(traffic, sent, F.lit("create"), F.col("setupsentbytes")),
        _values(time, role, F.col("operation"), F.col("operationtime") * 1e6),
        _values(time, role, F.lit("create"), F.col("setuptime") * 1e6),
    ]
    rows = parts[0].union(parts[1]).union(parts[2]).union(parts[3])
    return rows.groupBy("operation", "size", "what").agg(
        F.count("value").alias("runs"),
        F.sum("value").alias("total"),
        F.min("value").alias("least"),
        F.max("value").alias("most"),
    )


def _values(frame: DataFrame, what: Column, operation: Column, value: Column) -> DataFrame:
    return frame.select(
        operation.alias("operation"),
        F.col("groupsize").alias("size"),
        what,
        F.round(value).cast("bigint").alias("value"),
    )


def _read(spark: SparkSession, path: Path, columns: str) -> DataFrame:
    return spark.read.schema(columns).csv(str(path), header=True, enforceSchema=True, mode="FAILFAST")


def _check_header(spark: SparkSession, path: Path, columns: str) -> None:
    wanted = ",".join(column.split()[0] for column in columns.split(", "))
    first = spark.read.text(str(path)).limit(1).collect()
    found = first[0].value if first else ""
    if found != wanted:
        raise LabError(f"{path}: its columns are {found!r}, not {wanted!r}")
