"""Who recorded how much of what: one pass over the trace, and what can be read from its counts."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from linnet.lab.audit.reading import microseconds
from linnet.rooms.room import JOINED, LEFT
from linnet.streams.subscribe import DURABLE, SUBSCRIBED, UNSUBSCRIBED
from linnet.trace.jsonlines import PER_MINUTE
from linnet.trace.records import Kind

BEGINS = (SUBSCRIBED, DURABLE, JOINED)
ENDS = (UNSUBSCRIBED, LEFT)
"""Notes by which a node says that it begins or ceases to take part in a topic."""

ROOM = "room"
"""The note of deliveries in rooms, whatever kind of event it was."""
MINUTE_US = 60_000_000
_EVER = (-(1 << 62), 1 << 62)


def signs_of(trace: DataFrame) -> DataFrame:
    """The rows that are few and say much, so that the many are read as seldom as can be."""
    kind = F.col("kind")
    few = kind.isin(Kind.PUBLISHED.value, Kind.ONLINE.value, Kind.OFFLINE.value, Kind.LINK_UP.value)
    takes_part = (kind == Kind.CONTROL.value) & F.col("note").isin(*BEGINS, *ENDS)
    return trace.where(few | takes_part | (F.col("counter") == 0))


def begins_of(signs: DataFrame) -> DataFrame:
    """When each node's counters began at 0, and when it came online, in order. Grain: node."""
    us, is_first = microseconds(F.col("time")), F.col("counter") == 0
    is_online = F.col("kind") == Kind.ONLINE.value
    return (
        signs.where(is_first | is_online)
        .groupBy("node")
        .agg(
            F.array_sort(F.collect_set(F.when(is_first, us))).alias("epochs"),
            F.array_sort(F.collect_set(F.when(is_online, us))).alias("sessions"),
        )
    )


def runs_of(begins: DataFrame) -> DataFrame:
    """The time of each node cut where it started: from when to when which epoch and session was on.

    From 1; 0 is the rest of a run whose begin was rotated away. Grain: node, from_us.
    """
    cuts = F.array_distinct(F.concat(F.array(F.lit(_EVER[0])), "epochs", "sessions"))
    each = begins.select("*", F.explode(F.array_sort(cuts)).alias("from_us"))

    def number(name: str) -> Column:
        return F.size(F.filter(F.col(name), lambda begin: begin <= F.col("from_us")))

    later = F.filter(F.concat("epochs", "sessions"), lambda begin: begin > F.col("from_us"))
    return each.select(
        "node",
        "from_us",
        F.coalesce(F.array_min(later), F.lit(_EVER[1])).alias("to_us"),
        number("epochs").alias("epoch"),
        number("sessions").alias("session"),
    )


def tally_of(trace: DataFrame, begins: DataFrame) -> DataFrame:
    """Rows and events per node, run, kind, topic, author's device, reason and kind of note.

    The device is kept where it tells chains apart: in what was published and delivered.
    """
    is_minute = F.col("note").eqNullSafe(PER_MINUTE)
    of_event = F.col("kind").isin(Kind.PUBLISHED.value, Kind.DELIVERED.value)
    rows = trace.withColumn("us", microseconds(F.col("time"))).withColumn("is_minute", is_minute)
    # A count of a minute is dated at its begin and written after its end.
    written = F.when(F.col("is_minute"), F.col("us") + (MINUTE_US - 1)).otherwise(F.col("us"))
    runs = F.broadcast(runs_of(begins).withColumnRenamed("node", "who"))
    during = (F.col("who") == F.col("node")) & (written >= F.col("from_us")) & (written < F.col("to_us"))
    return (
        # A join and no functions of arrays, which would keep Spark from compiling the whole pass.
        rows.join(runs, during, "left")
        .select(
            "node",
            F.coalesce("epoch", F.lit(0)).alias("epoch"),
            F.coalesce("session", F.lit(0)).alias("session"),
            "kind",
            "topic",
            F.when(of_event, F.col("device")).alias("device"),
            "reason",
            _kept_note(F.col("is_minute")).alias("note"),
            "events",
            F.coalesce("bytes", F.lit(0)).alias("bytes"),
            (F.col("is_minute") & (F.col("us") < F.col("from_us"))).cast("bigint").alias("unplaced"),
            "us",
            "counter",
        )
        .groupBy("node", "epoch", "session", "kind", "topic", "device", "reason", "note")
        .agg(
            F.count("*").alias("rows"),
            F.sum("events").alias("events"),
            F.sum("bytes").alias("bytes"),
            F.coalesce(F.sum("unplaced"), F.lit(0)).alias("unplaced"),
            F.min("us").alias("first_us"),
            F.max("us").alias("last_us"),
            F.min("counter").alias("low_counter"),
            F.max("counter").alias("high_counter"),
        )
    )


def nodes_of(tally: DataFrame, begins: DataFrame) -> DataFrame:
    """Every node that wrote a row, numbered by its name, with when it started. Grain: number."""
    seen = tally.groupBy("node").agg(
        F.sum("rows").alias("rows"), F.min("first_us").alias("first_us"), F.max("last_us").alias("last_us")
    )
    none = F.array().cast("array<bigint>")
    return seen.join(begins, "node", "left").select(
        (F.row_number().over(Window.orderBy("node")) - 1).alias("number"),
        "node",
        "rows",
        "first_us",
        "last_us",
        F.coalesce("epochs", none).alias("epochs"),
        F.coalesce("sessions", none).alias("sessions"),
    )


def activity_of(tally: DataFrame, nodes: DataFrame) -> DataFrame:
    """The tally with nodes as numbers."""
    numbers = nodes.select("node", "number")
    return tally.join(F.broadcast(numbers), "node").drop("node").withColumnRenamed("number", "node")


def _kept_note(is_minute: Column) -> Column:
    """Notes are free text; these few say something that is counted."""
    kind, note = F.col("kind"), F.col("note")
    counted = (kind == Kind.RESYNC.value) & (F.length(note) <= 40)
    return (
        F.when(is_minute, F.lit(PER_MINUTE))
        .when(kind.isin(Kind.DELIVERED.value, Kind.PUBLISHED.value) & note.isNotNull(), F.lit(ROOM))
        .when(counted, note)
    )


def chains_of(activity: DataFrame) -> DataFrame:
    """Every chain of events: a device in a topic, numbered by their names. Grain: chain."""
    found = activity.where(F.col("topic").isNotNull() & F.col("device").isNotNull())
    return (
        found.select("topic", "device")
        .distinct()
        .select(
            (F.row_number().over(Window.orderBy("topic", "device")) - 1).alias("chain"), "topic", "device"
        )
    )


def holes_of(activity: DataFrame) -> DataFrame:
    """Rows that are missing between others of a run, by their counters. Grain: node.

    `begins_at` is the counter of the first row of its first run: what came before was rotated away.
    """
    runs = activity.groupBy("node", "epoch").agg(
        F.sum("rows").alias("rows"),
        F.sum("unplaced").alias("unplaced"),
        F.min("low_counter").alias("low"),
        F.max("high_counter").alias("high"),
    )
    lacking = F.sum(F.col("high") - F.col("low") + 1 - F.col("rows")) - F.sum("unplaced")
    return runs.groupBy("node").agg(
        F.greatest(lacking, F.lit(0)).alias("holes"),
        F.min_by("low", "epoch").alias("begins_at"),
    )


def links_of(signs: DataFrame, nodes: DataFrame) -> DataFrame:
    """How often links came up, and to how many peers. Grain: node."""
    opened = signs.where((F.col("kind") == Kind.LINK_UP.value) & F.col("peer").isNotNull())
    pairs = opened.groupBy("node", "peer").agg(F.count("*").alias("ups"))
    sums = pairs.groupBy("node").agg(F.sum("ups").alias("ups"), F.count("*").alias("peers"))
    return sums.join(F.broadcast(nodes.select("node", "number")), "node").select(
        F.col("number").alias("node"), "ups", "peers"
    )
