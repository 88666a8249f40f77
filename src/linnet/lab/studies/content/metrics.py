"""From points of single runs to distributions, percentages, and sums over stages.

Values are whole and their counts as well, so every sum is the same whatever machine finishes first.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from linnet.lab.studies.content.run import DUPLICATED, EXPECTED, MEMORY, MISSING, PROCESSOR, UNASKED

KEYS = ("scenario", "variant", "nodes", "f", "stage")
_COUNTED = (EXPECTED, MISSING, DUPLICATED, UNASKED)


def summary_of(points: DataFrame) -> DataFrame:
    """The distribution of each metric over nodes, events and repeats. Grain: that of `SUMMARY`.

    A delta below zero is dropped and counted: a process that gave memory back meanwhile says nothing of
    what a scenario took.
    """
    keys = [*KEYS, "metric"]
    usable = F.col("value") >= 0
    counted = points.groupBy(*keys).agg(
        _sum(F.when(usable, F.col("count")).otherwise(0)).alias("points"),
        _sum(F.when(~usable, F.col("count")).otherwise(0)).alias("dropped"),
    )
    merged = points.where(usable).groupBy(*keys, "value").agg(_sum(F.col("count")).alias("count"))
    upto = Window.partitionBy(*keys).orderBy("value")
    ranked = merged.withColumn("upto", F.sum("count").over(upto)).withColumn(
        "all", F.sum("count").over(Window.partitionBy(*keys))
    )
    spread = ranked.groupBy(*keys).agg(
        (F.sum(F.col("value") * F.col("count")) / F.sum("count")).alias("mean"),
        F.min("value").alias("least"),
        _quantile(0.25).alias("quarter"),
        _quantile(0.5).alias("half"),
        _quantile(0.75).alias("three_quarters"),
        F.max("value").alias("most"),
    )
    return counted.join(spread, keys, "left")


def _sum(column: Column) -> Column:
    return F.sum(column).cast("bigint")


def _quantile(share: float) -> Column:
    """The least value that so many points do not exceed."""
    return F.min(F.when(F.col("upto") >= F.ceil(F.lit(share) * F.col("all")), F.col("value")))


def correctness_of(points: DataFrame) -> DataFrame:
    """Who should have what and who had it, as counts and in percent. Grain: that of `CORRECTNESS`."""
    counts = [
        _sum(F.when(F.col("metric") == metric, F.col("value") * F.col("count")).otherwise(0)).alias(metric)
        for metric in _COUNTED
    ]
    expected, missing, duplicated = F.col(EXPECTED), F.col(MISSING), F.col(DUPLICATED)
    return (
        points.where(F.col("metric").isin(*_COUNTED))
        .groupBy(*KEYS)
        .agg(*counts)
        .withColumn("duplicated_percent", percent(duplicated, expected))
        .withColumn("reliability_percent", percent(expected - missing, expected))
    )


def percent(part: Column, whole: Column) -> Column:
    """A share in percent, to two places; nothing of nothing."""
    return F.when(whole > 0, F.round(100.0 * part / whole, 2))


def cumulated_of(summary: DataFrame) -> DataFrame:
    """Means of stages, and their sums from the first stage on. Grain: that of `CUMULATED`."""
    keys = [key for key in KEYS if key != "stage"]
    upto = Window.partitionBy(*keys, "metric").orderBy("stage")
    staged = summary.where((F.col("stage") > 0) & F.col("metric").isin(PROCESSOR, MEMORY))
    return staged.select(*KEYS, "metric", "mean", F.sum("mean").over(upto).alias("cumulated"))
