"""Exact quantiles of delays, of every reader, of every topic and of all together.

The bins say in which of them a quantile lies, and how deep. Only deliveries of those bins are looked at one
by one, so that nothing large is sorted.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from linnet.lab.audit.delays import Standing

PERCENTS = (50, 90, 95, 99)
_WHOSE = ["topic", "receiver"]


def quantiles_of(timed: DataFrame, delays: DataFrame, completeness: DataFrame, nodes: DataFrame) -> DataFrame:
    """Delays by nearest rank (`linnet.core.quantiles`) over all owed. Grain: topic, receiver, percent."""
    ranks = _ranks(completeness)
    sought = _places(ranks, _named(delays, nodes))
    some = timed.join(F.broadcast(sought.select("bin").distinct()), "bin", "left_semi")
    near = _named(some, nodes).withColumn("us", F.greatest("delay", F.lit(0)))
    few = F.broadcast(sought.select(*_WHOSE, "bin").distinct())
    counts = everyone(near, "bin", "us").join(few, [*_WHOSE, "bin"]).groupBy(*_WHOSE, "bin", "us")
    reached = _running(counts.agg(F.count("*").alias("count")), [*_WHOSE, "bin"], "us")
    found = sought.join(reached, [*_WHOSE, "bin"]).where(_holds("nth"))
    return ranks.join(found.select(*_WHOSE, "percent", "us"), [*_WHOSE, "percent"], "left").select(
        *_WHOSE, "percent", "us"
    )


def _ranks(completeness: DataFrame) -> DataFrame:
    """At which rank each quantile lies, what did not arrive included. Grain: topic, receiver, percent."""
    percents = F.explode(F.array(*(F.lit(each) for each in PERCENTS))).alias("percent")
    sums = everyone(completeness, "owed").groupBy(*_WHOSE).agg(F.sum("owed").alias("owed"))
    each = sums.where(F.col("owed") > 0).select(*_WHOSE, "owed", percents)
    return each.select(*_WHOSE, "percent", F.expr("(owed * percent + 99) div 100").alias("rank"))


def _places(ranks: DataFrame, delays: DataFrame) -> DataFrame:
    """The bin of each quantile, and which of its deliveries it is. Grain: topic, receiver, percent."""
    counts = everyone(delays, "bin", "count").groupBy(*_WHOSE, "bin").agg(F.sum("count").alias("count"))
    reached = _running(counts, _WHOSE, "bin")
    nth = F.col("rank") - (F.col("reached") - F.col("count"))
    return (
        ranks.join(reached, _WHOSE).where(_holds("rank")).select(*_WHOSE, "percent", "bin", nth.alias("nth"))
    )


def _running(counts: DataFrame, whose: list[str], order: str) -> DataFrame:
    upto = Window.partitionBy(*whose).orderBy(order).rowsBetween(Window.unboundedPreceding, 0)
    return counts.withColumn("reached", F.sum("count").over(upto))


def _holds(rank: str) -> Column:
    """Whether a rank lies in this row of a running sum."""
    return F.col(rank).between(F.col("reached") - F.col("count") + 1, F.col("reached"))


def _named(rows: DataFrame, nodes: DataFrame) -> DataFrame:
    """What was owed, with topics and receivers as people read them."""
    names = nodes.select(F.col("number").alias("receiver"), F.lower(F.hex("node")).alias("name"))
    owed = rows.where(F.col("standing") == Standing.OWED.value)
    return (
        owed.join(F.broadcast(names), "receiver")
        .withColumn("topic", F.lower(F.hex("topic")))
        .withColumn("receiver", F.col("name"))
    )


def everyone(rows: DataFrame, *columns: str) -> DataFrame:
    """Each row thrice: for its reader, for its topic, and for all together."""
    none = F.lit("")
    whose = F.array(
        F.struct(none.alias("topic"), none.alias("receiver")),
        F.struct("topic", none.alias("receiver")),
        F.struct("topic", "receiver"),
    )
    return rows.select(F.explode(whose).alias("whose"), *columns).select("whose.*", *columns)
