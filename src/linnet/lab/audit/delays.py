"""How long deliveries took, in exact bins, by topic, author and receiver."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from linnet.lab.bins import NEVER
from linnet.lab.spark.binning import bin_column


def delays_of(
    arrivals: DataFrame, publications: DataFrame, chains: DataFrame, readers: DataFrame
) -> DataFrame:
    """Deliveries counted by bin and hops. Grain: topic, author, receiver, owed, bin, hops.

    A clock that is ahead makes a delay negative: it counts as 0, and `least_us` tells of it. What was
    published before its reader took part was not owed: it is history that it asked for.
    """
    told = publications.select("chain", "seq", "author", "published_us")
    begins = readers.select("topic", "receiver", "begin_us")
    delay = F.col("first_us") - F.col("published_us")
    milliseconds = F.floor(F.greatest(delay, F.lit(0)) / 1000).cast("bigint")
    known = F.col("published_us").isNotNull()
    return (
        arrivals.join(told.hint("shuffle_hash"), ["chain", "seq"], "left")
        .join(F.broadcast(chains.select("chain", "topic")), "chain")
        .join(F.broadcast(begins), ["topic", "receiver"])
        .select(
            "topic",
            "author",
            "receiver",
            (known & (F.col("published_us") >= F.col("begin_us"))).alias("owed"),
            F.when(known, bin_column(milliseconds)).otherwise(F.lit(NEVER)).alias("bin"),
            "hops",
            (F.col("times") - 1).alias("repeated"),
            delay.alias("delay"),
        )
        .groupBy("topic", "author", "receiver", "owed", "bin", "hops")
        .agg(
            F.count("*").alias("count"),
            F.sum("repeated").cast("bigint").alias("repeated"),
            F.min("delay").alias("least_us"),
        )
    )
