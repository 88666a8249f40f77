"""Who should have got what: the readers of each topic, and when they were there."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from linnet.lab.audit.activity import ROOM
from linnet.streams.subscribe import DURABLE, SUBSCRIBED, UNSUBSCRIBED
from linnet.trace.jsonlines import PER_MINUTE
from linnet.trace.records import Kind


def readers_of(activity: DataFrame, nodes: DataFrame) -> DataFrame:
    """Every node that subscribed to a topic or was handed an event of it. Grain: topic, receiver.

    It takes part from its first subscription on; where the trace tells of none (rooms, and traces that
    begin later) from the first row that it wrote about the topic. It ends with its last unsubscription, or
    with its trace. Members of rooms, and durable subscriptions, are owed what was said while they
    were away.
    """
    kind, note = F.col("kind"), F.col("note")
    subscribed = (kind == Kind.CONTROL.value) & note.isin(SUBSCRIBED, DURABLE)
    unsubscribed = (kind == Kind.CONTROL.value) & (note == UNSUBSCRIBED)
    delivered = (kind == Kind.DELIVERED.value) & ~note.eqNullSafe(PER_MINUTE)
    lasting = (delivered & note.eqNullSafe(ROOM)) | (subscribed & note.eqNullSafe(DURABLE))
    found = (
        activity.where(F.col("topic").isNotNull())
        .groupBy("topic", F.col("node").alias("receiver"))
        .agg(
            F.min(F.when(subscribed, F.col("first_us"))).alias("subscribed_us"),
            F.max(F.when(subscribed, F.col("last_us"))).alias("again_us"),
            F.max(F.when(unsubscribed, F.col("last_us"))).alias("unsubscribed_us"),
            F.min("first_us").alias("seen_us"),
            F.max(lasting.cast("int")).alias("lasting"),
            F.max((delivered | subscribed).cast("int")).alias("reads"),
        )
        .where(F.col("reads") == 1)
    )
    ended = F.col("unsubscribed_us") > F.coalesce("again_us", F.lit(0))
    ends = nodes.select(F.col("number").alias("receiver"), F.col("last_us"))
    return (
        found.join(F.broadcast(ends), "receiver")
        .join(_self_readers(activity), ["topic", "receiver"], "left")
        .select(
            "topic",
            "receiver",
            F.coalesce("subscribed_us", "seen_us").alias("begin_us"),
            F.when(ended, F.col("unsubscribed_us")).otherwise(F.col("last_us")).alias("end_us"),
            (F.coalesce("lasting", F.lit(0)) == 1).alias("lasting"),
            F.col("own").isNotNull().alias("own"),
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
