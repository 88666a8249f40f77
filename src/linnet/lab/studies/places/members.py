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


def histories_of(changes: DataFrame) -> DataFrame:
    """All changes of each nym in one row: there are few. Grain: (place, nym)."""
    each = F.struct("announced_at", "effective_since", "told_in", "joins")
    return changes.groupBy("place", "nym").agg(F.collect_list(each).alias("history"))


def verdicts(changes: DataFrame, tests: DataFrame) -> DataFrame:
    """May this nym have fragments of this message and generation? Grain: that of the tests.

    Of the changes that are effective at the message the one announced last decides. With `replay` the
    notice of one's own removal is open, too. A test meets one row with all changes of its nym, so that tests,
    of which there are many more, are neither multiplied nor grouped.
    """
    theirs = tests.join(histories_of(changes), ["place", "nym"], "left")
    return judged(theirs, changes)


def judged(theirs: DataFrame, changes: DataFrame) -> DataFrame:
    """The same for tests that have the changes of their nyms beside them."""
    message, known = F.col("message"), F.coalesce("known", F.lit(0))
    effective = F.filter("history", lambda each: each["effective_since"] <= message)
    last = F.array_max(F.transform(effective, lambda each: F.struct(each["announced_at"], each["joins"])))
    own = F.exists(
        "history",
        lambda each: (
            F.col("replay")
            & ~each["joins"]
            & (each["announced_at"] == message)
            & (F.col("generation") <= each["told_in"])
        ),
    )
    verdict = (
        F.when(F.coalesce(own, F.lit(False)), Verdict.YES.value)
        .when(F.col("generation") > known, Verdict.UNKNOWN.value)
        .when(F.coalesce(last["joins"], F.lit(False)), Verdict.YES.value)
        .otherwise(Verdict.NO.value)
    )
    told = theirs.join(F.broadcast(known_generations(changes)), "place", "left")
    return told.select(*_TEST, verdict.alias("verdict"))


def every_test(taken: DataFrame) -> DataFrame:
    """Everybody who was ever in, with every message that began: live, replayed, and a generation later."""
    nyms = changes_of(taken).select("place", "nym").distinct()
    return _crossed(taken, nyms).select(*_TEST)


def sampled_verdicts(taken: DataFrame, every: int) -> DataFrame:
    """Verdicts on everybody who was ever in, with every so-manieth message. Grain: that of a test.

    The changes of a nym come with it, and are small: messages meet them where they are.
    """
    changes = changes_of(taken)
    some = taken.where(F.col("message") % every == 0)
    return judged(_crossed(some, F.broadcast(histories_of(changes))), changes)


def _crossed(taken: DataFrame, nyms: DataFrame) -> DataFrame:
    """Each nym of a place with each message of it that began, in three ways."""
    begun = taken.where(F.col("offset") == 0).select("place", "message", "generation")
    ways = F.array(
        F.struct(F.lit(0).alias("later"), F.lit(False).alias("replay")),
        F.struct(F.lit(0).alias("later"), F.lit(True).alias("replay")),
        F.struct(F.lit(1).alias("later"), F.lit(False).alias("replay")),
    )
    crossed = begun.join(nyms, "place").withColumn("way", F.explode(ways))
    later = F.col("generation") + F.col("way.later")
    return crossed.withColumn("generation", later).withColumn("replay", F.col("way.replay")).drop("way")
