"""Fragments and messages of tests, one by one."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from linnet.lab.studies.places.columns import PARSED, TAKEN

Modifiers = Sequence[tuple[str, str, bytes]]


def taken_frame(spark: SparkSession, rows: Sequence[dict[str, object]]) -> DataFrame:
    """Fragments that were taken; what a row does not name is as in a message of one piece."""
    plain: dict[str, object] = {
        "place": 1, "message": 1, "offset": 0, "generation": 0, "flags": 3, "nym": None, "joins": None,
        "since": None, "body": b"", "copies": 1, "equivocated": False,
    }  # fmt: skip
    names = [column.split()[0] for column in TAKEN.columns.split(", ")]
    made = [{**plain, "fragment": at, **row} for at, row in enumerate(rows)]
    return spark.createDataFrame([tuple(row[name] for name in names) for row in made], TAKEN.columns)


def parsed_frame(
    spark: SparkSession, steps: Sequence[tuple[int, int | None, Modifiers, bytes | None]]
) -> DataFrame:
    """Messages of place 1: number, delta, modifiers, hash."""
    rows = [(1, message, "_m", delta, hash, list(changes), None) for message, delta, changes, hash in steps]
    return spark.createDataFrame(rows, PARSED.columns)
