"""The membership test for many at once: an as-of join over all changes, and generations that are known."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from linnet.places.channel.membership import Verdict

_TEST = ("place", "nym", "message", "generation", "replay")


def changes_of(taken: DataFrame) -> DataFrame:
    """Every change of membership that came. Grain: (place, nym, announced_at)."""
    return taken.where("nym IS NOT NULL").select(
        "place",
        "nym",
        F.col("message").alias("announced_at"),
        F.col("since").alias("effective_since"),
        F.col("generation").alias("told_in"),
        "joins",
    )


def known_generations(changes: DataFrame) -> DataFrame:
    """The generation up to which no removal is missing. Grain: (place)."""
    parts = changes.where(~F.col("joins")).select("place", "told_in").distinct()
    line = Window.partitionBy("place").orderBy("told_in")
    in_turn = F.col("told_in") == F.row_number().over(line) - 1
    return (
        parts.select("place", in_turn.cast("bigint").alias("in_turn"))
        .groupBy("place")
        .agg(F.sum("in_turn").alias("known"))
    )


def verdicts(changes: DataFrame, tests: DataFrame) -> DataFrame:
    """May this nym have fragments of this message and generation? Grain: that of the tests.

    Of the changes that are effective at the message the one announced last decides. With `replay` the
    notice of one's own removal is open, too.
    """
    theirs = tests.join(changes, ["place", "nym"], "left")
    decides = F.when(F.col("effective_since") <= F.col("message"), F.col("announced_at"))
    own = (
        F.col("replay")
        & ~F.col("joins")
        & (F.col("announced_at") == F.col("message"))
        & (F.col("generation") <= F.col("told_in"))
    )
    judged = theirs.groupBy(*_TEST).agg(
        F.max_by("joins", decides).alias("inside"),
        F.coalesce(F.max(own), F.lit(False)).alias("own"),
    )
    known = F.coalesce("known", F.lit(0))
    verdict = (
        F.when(F.col("own"), Verdict.YES.value)
        .when(F.col("generation") > known, Verdict.UNKNOWN.value)
        .when(F.coalesce("inside", F.lit(False)), Verdict.YES.value)
        .otherwise(Verdict.NO.value)
    )
    return judged.join(F.broadcast(known_generations(changes)), "place", "left").select(
        *_TEST, verdict.alias("verdict")
    )


def every_test(taken: DataFrame) -> DataFrame:
    """Everybody who was ever in, with every message that began: live, replayed, and a generation later."""
    nyms = changes_of(taken).select("place", "nym").distinct()
    begun = taken.where(F.col("offset") == 0).select("place", "message", "generation")
    ways = F.array(
        F.struct(F.lit(0).alias("later"), F.lit(False).alias("replay")),
        F.struct(F.lit(0).alias("later"), F.lit(True).alias("replay")),
        F.struct(F.lit(1).alias("later"), F.lit(False).alias("replay")),
    )
    crossed = nyms.join(begun, "place").withColumn("way", F.explode(ways))
    return crossed.select(
        "place",
        "nym",
        "message",
        (F.col("generation") + F.col("way.later")).alias("generation"),
        F.col("way.replay").alias("replay"),
    )
