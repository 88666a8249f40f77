"""Who should have got what: the readers of each topic, and when they were there."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from linnet.lab.audit.activity import ROOM
from linnet.lab.audit.reading import microseconds
from linnet.streams.subscribe import DURABLE, SUBSCRIBED, UNSUBSCRIBED
from linnet.trace.jsonlines import PER_MINUTE
from linnet.trace.records import Kind


def switches_of(trace: DataFrame, nodes: DataFrame) -> DataFrame:
    """When each node subscribed to a topic and unsubscribed, in order. Grain: topic, receiver.

    Whoever starts anew has to subscribe again.
    """
    note = F.col("note")
    told = trace.where(
        (F.col("kind") == Kind.CONTROL.value)
        & note.isin(SUBSCRIBED, DURABLE, UNSUBSCRIBED)
        & F.col("topic").isNotNull()
    )
    switch = F.struct(microseconds(F.col("time")).alias("us"), (note != UNSUBSCRIBED).alias("on"))
    names = nodes.select("node", F.col("number").alias("receiver"), "sessions")
    grouped = told.groupBy("topic", "node").agg(
        F.collect_list(switch).alias("switches"),
        F.max((note == DURABLE).cast("int")).alias("durable"),
        F.min(F.when(note != UNSUBSCRIBED, microseconds(F.col("time")))).alias("subscribed_us"),
    )
    starts = F.transform("sessions", lambda us: F.struct(us.alias("us"), F.lit(False).alias("on")))
    return grouped.join(F.broadcast(names), "node").select(
        "topic",
        "receiver",
        F.array_sort(F.concat("switches", starts)).alias("switches"),
        "durable",
        "subscribed_us",
    )


def readers_of(activity: DataFrame, nodes: DataFrame, switches: DataFrame) -> DataFrame:
    """Every node that subscribed to a topic or was handed an event of it. Grain: topic, receiver.

    It takes part from its first subscription on; where the trace tells of none (rooms, and traces that
    begin later) from the first row that it wrote about the topic. It ends with its last unsubscription, or
    with its trace. Members of rooms, and durable subscriptions, are owed what was said while they
    were away.
    """
    kind, note = F.col("kind"), F.col("note")
    delivered = (kind == Kind.DELIVERED.value) & ~note.eqNullSafe(PER_MINUTE)
    seen = (
        activity.where(F.col("topic").isNotNull())
        .groupBy("topic", F.col("node").alias("receiver"))
        .agg(
            F.min("first_us").alias("seen_us"),
            F.max((delivered & note.eqNullSafe(ROOM)).cast("int")).alias("member"),
            F.max(delivered.cast("int")).alias("handed"),
        )
    )
    ends = nodes.select(F.col("number").alias("receiver"), "last_us")
    last = F.element_at("switches", -1)
    ended = F.col("switches").isNotNull() & ~last["on"]
    none = F.array().cast("array<struct<us: bigint, on: boolean>>")
    return (
        seen.join(switches, ["topic", "receiver"], "left")
        .where((F.col("handed") == 1) | F.col("subscribed_us").isNotNull())
        .join(F.broadcast(ends), "receiver")
        .join(_self_readers(activity), ["topic", "receiver"], "left")
        .select(
            "topic",
            "receiver",
            F.coalesce("subscribed_us", "seen_us").alias("begin_us"),
            F.when(ended, last["us"]).otherwise(F.col("last_us")).alias("end_us"),
            ((F.coalesce("durable", F.lit(0)) == 1) | (F.col("member") == 1)).alias("lasting"),
            F.col("own").isNotNull().alias("own"),
            F.coalesce("switches", none).alias("switches"),
        )
    )


def _self_readers(activity: DataFrame) -> DataFrame:
    """Nodes that were handed what they published themselves. In rooms nobody is."""
    of_event = activity.where(F.col("topic").isNotNull() & F.col("device").isNotNull())
    names = [F.col("topic"), F.col("node").alias("receiver"), F.col("device")]
    published = of_event.where(F.col("kind") == Kind.PUBLISHED.value).select(*names).distinct()
    delivered = of_event.where(F.col("kind") == Kind.DELIVERED.value).select(*names).distinct()
    both = published.join(delivered, ["topic", "receiver", "device"], "left_semi")
    return both.select("topic", "receiver", F.lit(True).alias("own")).distinct()


def sessions_of(activity: DataFrame, nodes: DataFrame) -> DataFrame:
    """When each node was online: begin, last row, and whether it said goodbye, in order. Grain: number."""
    ends = (
        activity.groupBy("node", "session")
        .agg(
            F.max("last_us").alias("end_us"),
            F.max((F.col("kind") == Kind.OFFLINE.value).cast("int")).alias("clean"),
        )
        .groupBy("node")
        .agg(F.array_sort(F.collect_list(F.struct("session", "end_us", "clean"))).alias("ends"))
    )
    return nodes.join(ends.withColumnRenamed("node", "number"), "number").select(
        "number", "sessions", "ends", "last_us"
    )
