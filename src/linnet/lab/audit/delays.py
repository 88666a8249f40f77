"""How long deliveries took, in exact bins, by topic and receiver."""

from __future__ import annotations

from enum import StrEnum

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from linnet.lab.bins import NEVER
from linnet.lab.spark.binning import bin_column, whole_milliseconds


class Standing(StrEnum):
    """What a delivery was to its receiver."""

    OWED = "owed"
    HISTORY = "history"
    """It was published before its reader took part, who asked for it."""
    UNPUBLISHED = "unpublished"
    """Nobody recorded its publication."""


def timed_of(arrivals: DataFrame, chains: DataFrame, readers: DataFrame) -> DataFrame:
    """Each first delivery with its delay and bin. Grain: that of arrivals."""
    begins = readers.select("topic", "receiver", "begin_us")
    published = F.col("published_us")
    delay = F.col("first_us") - published
    standing = (
        F.when(published.isNull(), Standing.UNPUBLISHED.value)
        .when(published < F.col("begin_us"), Standing.HISTORY.value)
        .otherwise(Standing.OWED.value)
    )
    bin = F.when(published.isNull(), F.lit(NEVER)).otherwise(bin_column(whole_milliseconds(delay)))
    return (
        arrivals.join(F.broadcast(chains.select("chain", "topic")), "chain")
        .join(F.broadcast(begins), ["topic", "receiver"])
        .select(
            "topic",
            "receiver",
            standing.alias("standing"),
            bin.alias("bin"),
            F.when(delay < 0, F.col("author")).alias("early"),
            (F.col("times") - 1).alias("repeated"),
            delay.alias("delay"),
        )
    )


def delays_of(timed: DataFrame) -> DataFrame:
    """Deliveries counted by bin. Grain: topic, receiver, standing, bin, early.

    A clock that is ahead makes a delay negative: it counts as 0, and `early` and `least_us` tell of it.
    """
    return timed.groupBy("topic", "receiver", "standing", "bin", "early").agg(
        F.count("*").alias("count"),
        F.sum("repeated").cast("bigint").alias("repeated"),
        F.min("delay").alias("least_us"),
        F.max("delay").alias("most_us"),
        F.sum(F.greatest("delay", F.lit(0))).alias("sum_us"),
    )
