"""The line of fragments: each once, what is missing in between, and whether generations can be believed."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

_FIRST = ("message", "offset", "generation", "flags", "nym", "joins", "since", "body")
FALLS, UNEXPLAINED = "falls", "unexplained"


def taken(fragments: DataFrame) -> DataFrame:
    """Of those that are not refused each number once, as it came first. Grain: (place, fragment).

    Put together by place, so that nothing that follows has to be moved again.
    """
    good = fragments.where("fault IS NULL").repartition("place")
    first = F.min_by(F.struct(*_FIRST), F.col("arrival")).alias("first")
    once = good.groupBy("place", "fragment").agg(
        first,
        F.count(F.lit(1)).alias("copies"),
        (F.min("event") != F.max("event")).alias("equivocated"),
    )
    return once.select("place", "fragment", "first.*", "copies", "equivocated")


def fragment_gaps(taken: DataFrame) -> DataFrame:
    """Numbers that did not come below the highest that did. Grain: (place, first)."""
    return _gaps(taken.select("place", F.col("fragment").alias("number")), -1)


def message_gaps(taken: DataFrame) -> DataFrame:
    """Messages of which nothing came, though something of a later one did. Grain: (place, first)."""
    numbers = taken.select("place", F.col("message").alias("number")).distinct()
    return _gaps(numbers, 0)


def _gaps(numbers: DataFrame, before: int) -> DataFrame:
    line = Window.partitionBy("place").orderBy("number")
    at = numbers.withColumn("before", F.lag("number", 1, before).over(line))
    return at.where("number - before > 1").select(
        "place", (F.col("before") + 1).alias("first"), (F.col("number") - 1).alias("last")
    )


def generation_faults(taken: DataFrame) -> DataFrame:
    """Fragments whose generation is below, or above, what those before them allow. Grain: (place, fragment).

    The generation grows by one behind every notice of a removal. Fragments that are missing may each have
    been such a notice, so it may have grown by as many.
    """
    line = Window.partitionBy("place").orderBy("fragment")
    grown = F.col("generation") + F.when(~F.col("joins"), 1).otherwise(0)
    at = taken.select(
        "place",
        "fragment",
        "generation",
        F.lag(grown, 1, 0).over(line).alias("least"),
        (F.col("fragment") - F.lag("fragment", 1, -1).over(line) - 1).alias("missing"),
    )
    fault = F.when(F.col("generation") < F.col("least"), FALLS).when(
        F.col("generation") > F.col("least") + F.col("missing"), UNEXPLAINED
    )
    return at.select("place", "fragment", fault.alias("fault")).where("fault IS NOT NULL")
