"""Who should have got what: the readers of each topic, and when they were there."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from linnet.lab.audit.activity import BEGINS, ENDS, ROOM
from linnet.lab.audit.reading import microseconds
from linnet.rooms.room import JOINED, LEFT
from linnet.streams.subscribe import DURABLE
from linnet.trace.jsonlines import PER_MINUTE
from linnet.trace.records import Kind


def switches_of(signs: DataFrame, nodes: DataFrame) -> DataFrame:
    """When each node began and ceased to take part in a topic, in order. Grain: topic, receiver.

    Whoever starts anew has to subscribe again, unless it is a member or its subscription is durable; one
    that is durable goes on where it was, so that only its last end counts.
    """
    note, us = F.col("note"), microseconds(F.col("time"))
    is_on = note.isin(*BEGINS)
    told = signs.where(
        (F.col("kind") == Kind.CONTROL.value) & note.isin(*BEGINS, *ENDS) & F.col("topic").isNotNull()
    )
    grouped = told.groupBy("topic", "node").agg(
        F.array_sort(F.collect_list(F.struct(us.alias("us"), is_on.alias("on")))).alias("told"),
        F.max((note == DURABLE).cast("int")).alias("durable"),
        F.max(note.isin(JOINED, LEFT).cast("int")).alias("member"),
        F.min(F.when(is_on, us)).alias("begin_us"),
    )
    last = F.element_at("told", -1)
    starts = F.transform("sessions", lambda start: F.struct(start.alias("us"), F.lit(False).alias("on")))
    switches = (
        F.when(F.col("durable") == 1, F.filter("told", lambda switch: switch["on"] | (switch == last)))
        .when(F.col("member") == 1, F.col("told"))
        .otherwise(F.array_sort(F.concat("told", starts)))
    )
    names = nodes.select("node", F.col("number").alias("receiver"), "sessions")
    return grouped.join(F.broadcast(names), "node").select(
        "topic",
        "receiver",
        switches.alias("switches"),
        ((F.col("durable") == 1) | (F.col("member") == 1)).alias("lasting"),
        "begin_us",
    )


def readers_of(activity: DataFrame, nodes: DataFrame, switches: DataFrame) -> DataFrame:
    """Every node that subscribed to a topic or was handed an event of it. Grain: topic, receiver.

    It takes part from its first subscription on, or since it joined; where the trace tells of neither,
    because it begins later, from the first row that it wrote about the topic. It ends when it unsubscribed
    or left for good, or with its trace. Members of rooms, and durable subscriptions, are owed what was said
    while they were away.
    """
    kind, note = F.col("kind"), F.col("note")
    delivered = (kind == Kind.DELIVERED.value) & ~note.eqNullSafe(PER_MINUTE)
    seen = (
        activity.where(F.col("topic").isNotNull())
        .groupBy("topic", F.col("node").alias("receiver"))
        .agg(
            F.min("first_us").alias("seen_us"),
            F.max((delivered & note.eqNullSafe(ROOM)).cast("int")).alias("in_room"),
            F.max(delivered.cast("int")).alias("handed"),
        )
    )
    ends = nodes.select(F.col("number").alias("receiver"), "last_us")
    last = F.element_at("switches", -1)
    ended = F.col("switches").isNotNull() & ~last["on"]
    none = F.array().cast("array<struct<us: bigint, on: boolean>>")
    return (
        seen.join(switches, ["topic", "receiver"], "left")
        .where((F.col("handed") == 1) | (F.col("begin_us").isNotNull()))
        .join(F.broadcast(ends), "receiver")
        .join(_self_readers(activity), ["topic", "receiver"], "left")
        .select(
            "topic",
            "receiver",
            F.coalesce("begin_us", "seen_us").alias("begin_us"),
            F.when(ended, last["us"]).otherwise(F.col("last_us")).alias("end_us"),
            (F.coalesce("lasting", F.lit(False)) | (F.col("in_room") == 1)).alias("lasting"),
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
