"""What became of events that a reader was not handed.

Each has the first of these fates that fits:

`explained`  the receiver recorded that it rejected, dropped or let go of it; or its author that it did not
             get through; or, if nobody was handed it, somebody that it was refused
`stored`     the receiver has it in its log, and has not handed it over yet, or came to it too late to show
`before`     published before the receiver took part: not owed
`after`      published after it had unsubscribed: not owed
`pending`    the receiver's trace ends before it had to be there
`away`       published while the receiver was away or had no subscription, and none that lasts: not owed
`cut`        the receiver was killed within seconds of it, and with it the last rows of its trace
`lost`       none of these: lost without a record
"""

from __future__ import annotations

from enum import StrEnum

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from linnet.lab.audit.excuses import with_excuses
from linnet.trace.records import Kind


class Fate(StrEnum):
    """Why an event was not handed to a reader."""

    EXPLAINED = "explained"
    STORED = "stored"
    BEFORE = "before"
    AFTER = "after"
    PENDING = "pending"
    AWAY = "away"
    CUT = "cut"
    LOST = "lost"


NOT_OWED = (Fate.BEFORE, Fate.AFTER, Fate.AWAY)

CUT_US = 2_000_000
"""Rows of a trace are in memory for a second at most, and those of one moment belong together."""


def unserved(
    publications: DataFrame, arrivals: DataFrame, chains: DataFrame, readers: DataFrame
) -> DataFrame:
    """Events with fewer receivers than their topic has readers. Grain: chain, seq.

    By counts alone: that an event reached everyone is the rule, and no pair of event and reader is made
    for it.
    """
    sizes = readers.groupBy("topic").agg(F.count("*").alias("readers"))
    modest = readers.where(~F.col("own")).select(
        "topic", F.col("receiver").alias("author"), F.lit(1).alias("modest")
    )
    served = arrivals.groupBy("chain", "seq").agg(F.count("*").alias("served"))
    expected = F.col("readers") - F.coalesce("modest", F.lit(0))
    return (
        publications.join(F.broadcast(chains.select("chain", "topic")), "chain")
        .join(F.broadcast(sizes), "topic")
        .join(F.broadcast(modest), ["topic", "author"], "left")
        .join(served, ["chain", "seq"], "left")
        .withColumn("served", F.coalesce("served", F.lit(0)))
        .where(F.col("served") < expected)
        .select("chain", "topic", "seq", "author", "published_us", "event", "served")
    )


def missing_pairs(lacking: DataFrame, arrivals: DataFrame, readers: DataFrame) -> DataFrame:
    """Each event and each reader that was not handed it. Grain: chain, seq, receiver."""
    others = readers.select("topic", "receiver", "own", "begin_us", "end_us", "lasting", "switches")
    pairs = lacking.join(F.broadcast(others), "topic").where(
        (F.col("receiver") != F.col("author")) | F.col("own")
    )
    came = arrivals.join(lacking.select("chain", "seq"), ["chain", "seq"], "left_semi")
    return pairs.join(came.select("chain", "seq", "receiver"), ["chain", "seq", "receiver"], "left_anti")


def fates_of(
    pairs: DataFrame, chains: DataFrame, excuses: DataFrame, sessions: DataFrame, grace_us: int
) -> DataFrame:
    """Missing events with their fates. Grain: topic, device, seq, receiver."""
    named = pairs.join(F.broadcast(chains.select("chain", "device")), "chain")
    return (
        with_excuses(named, excuses, grace_us)
        .join(F.broadcast(sessions.withColumnRenamed("number", "receiver")), "receiver")
        .withColumn("session", F.size(F.filter("sessions", lambda begin: begin <= F.col("published_us"))))
        .withColumn("was", F.get(F.filter("ends", lambda run: run["session"] == F.col("session")), 0))
        .withColumn("back_us", F.get(F.col("sessions"), F.col("session")))
        .withColumn("is_away", F.coalesce(F.col("published_us") > F.col("was.end_us"), F.lit(False)))
        .withColumn("is_off", ~F.coalesce(_last_switch()["on"], F.lit(True)))
        .withColumn("fate", _fate(grace_us))
        .select(
            "topic", "device", "seq", "event", "author", "receiver", "published_us", "fate", "kind", "reason"
        )
    )


def _last_switch() -> Column:
    """What a reader did last, before an event was published: it subscribed, or it stopped."""
    before = F.filter("switches", lambda switch: switch["us"] <= F.col("published_us"))
    return F.get(before, F.size(before) - 1)


def _fate(grace_us: int) -> Column:
    published, end = F.col("published_us"), F.col("end_us")
    due = F.when(F.col("is_away"), F.col("back_us")).otherwise(published)
    killed = (F.col("was.clean") == 0) & F.col("back_us").isNotNull()
    is_cut = killed & published.between(F.col("was.end_us") - CUT_US, F.col("was.end_us") + CUT_US)
    return (
        F.when(F.col("kind") == Kind.STORED.value, Fate.STORED.value)
        .when(F.col("kind").isNotNull(), Fate.EXPLAINED.value)
        .when(published < F.col("begin_us"), Fate.BEFORE.value)
        .when((published > end) & (end < F.col("last_us")), Fate.AFTER.value)
        .when(due.isNull() | (due + grace_us > end), Fate.PENDING.value)
        .when(is_cut, Fate.CUT.value)
        .when(F.col("is_off") | (F.col("is_away") & ~F.col("lasting")), Fate.AWAY.value)
        .otherwise(Fate.LOST.value)
    )
