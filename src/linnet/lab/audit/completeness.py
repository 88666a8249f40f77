"""What was owed to each reader of a topic, and what came of it."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from linnet.lab.audit.delays import Standing
from linnet.lab.audit.fates import NOT_OWED, Fate
from linnet.trace.jsonlines import PER_MINUTE
from linnet.trace.records import Kind

GAP_FILLED = "gap filled"
"""The note by which a node says that a gap in a chain is closed (`linnet.delivery.gap_repair`)."""


def completeness_of(
    readers: DataFrame, delays: DataFrame, missing: DataFrame, activity: DataFrame, nodes: DataFrame
) -> DataFrame:
    """Sums for each reader of a topic. Grain: topic, receiver.

    `owed` = `delivered` + `stored` + `explained` + `pending` + `cut` + `lost`; nothing is left over.
    """
    key = ["topic", "receiver"]
    names = nodes.select(F.col("number").alias("receiver"), F.lower(F.hex("node")).alias("name"))
    joined = (
        readers.select(*key)
        .join(_delivered(delays), key, "left")
        .join(_fated(missing), key, "left")
        .join(_noticed(activity), key, "left")
        .join(names, "receiver")
        .na.fill(0)
    )
    owed = ("delivered", Fate.STORED, Fate.EXPLAINED, Fate.PENDING, Fate.CUT, Fate.LOST)
    return joined.select(
        F.lower(F.hex("topic")).alias("topic"),
        F.col("name").alias("receiver"),
        sum((F.col(name) for name in owed), F.lit(0).cast("bigint")).alias("owed"),
        "delivered",
        *(F.col(fate.value) for fate in Fate if fate not in NOT_OWED),
        sum((F.col(fate.value) for fate in NOT_OWED), F.lit(0).cast("bigint")).alias("not_owed"),
        "history",
        "unpublished",
        "repeated",
        "duplicates",
        "gaps_filled",
        "resent",
    )


def _delivered(delays: DataFrame) -> DataFrame:
    def of(standing: Standing) -> Column:
        return F.sum(F.when(F.col("standing") == standing.value, F.col("count")))

    return delays.groupBy("topic", "receiver").agg(
        of(Standing.OWED).alias("delivered"),
        of(Standing.HISTORY).alias("history"),
        of(Standing.UNPUBLISHED).alias("unpublished"),
        F.sum("repeated").alias("repeated"),
    )


def _fated(missing: DataFrame) -> DataFrame:
    return missing.groupBy("topic", "receiver").agg(
        *(F.sum((F.col("fate") == fate.value).cast("bigint")).alias(fate.value) for fate in Fate)
    )


def _noticed(activity: DataFrame) -> DataFrame:
    """Copies that were filtered out, and gaps: closed ones, and events that came by asking."""
    kind, note = F.col("kind"), F.col("note")
    resync = kind == Kind.RESYNC.value
    plain = resync & (note.isNull() | note.eqNullSafe(PER_MINUTE))
    return activity.groupBy("topic", F.col("node").alias("receiver")).agg(
        F.sum(F.when(kind == Kind.DUPLICATE.value, F.col("events"))).alias("duplicates"),
        F.sum(F.when(resync & (note == GAP_FILLED), F.col("rows"))).alias("gaps_filled"),
        F.sum(F.when(plain, F.col("events"))).alias("resent"),
    )
