"""The run: how often each length occurs, as integers, in a table that is small for any input."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from linnet.lab.spark.binning import bin_column
from linnet.lab.tables import Table

LENGTHS = Table(
    "lengths",
    1,
    "chat STRING NOT NULL, bin INT NOT NULL, count BIGINT NOT NULL",
    ("chat", "bin"),
)


def lengths(texts: DataFrame) -> DataFrame:
    """Count messages per chat and bin of their length. Grain: one row per (chat, bin)."""
    binned = texts.select("chat", bin_column(F.col("chars").cast("bigint")).alias("bin"))
    return binned.groupBy("chat", "bin").agg(F.count(F.lit(1)).alias("count"))
