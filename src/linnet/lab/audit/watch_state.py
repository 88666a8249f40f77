"""What a watch knows after a batch: from what it knew before, and the rows of the batch.

Events are open until everything about them must have come: until the watermark, which is the time of the
newest rows less the lateness that is allowed, has passed their publication. Then they are settled: counted
for good, and forgotten. A row that is older than the watermark was when its batch began is late: it is
counted as such, and changes nothing that is settled.
"""

from __future__ import annotations

from msgspec import Struct
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from linnet.lab.audit.activity import BEGINS, ENDS
from linnet.lab.audit.reading import microseconds
from linnet.lab.bins import NEVER
from linnet.lab.spark.binning import bin_column, whole_milliseconds
from linnet.streams.ingest import POLICY
from linnet.trace.jsonlines import PER_MINUTE
from linnet.trace.records import Kind

PUBLISHED = Kind.PUBLISHED.value
DELIVERED = Kind.DELIVERED.value
MISSING = "missing"
DELAY = "delay"
LATE = "late"
BAD = "bad lines"
UNPUBLISHED = "unpublished"
REPEATED = "repeated"
COUNTED = (Kind.DUPLICATE, Kind.REJECTED, Kind.DROPPED, Kind.EXPIRED, Kind.EVICTED, Kind.RESYNC)
"""Kinds that are summed as they come, by reason."""

_EVENT = ["topic", "device", "seq"]


class Known(Struct, frozen=True):
    """The state as tables; see `linnet.lab.tables`."""

    open: DataFrame
    sums: DataFrame
    readers: DataFrame
    nodes: DataFrame


def marked(rows: DataFrame, watermark_us: int) -> DataFrame:
    """Rows of the trace with their time in microseconds, and whether they come too late."""
    us = microseconds(F.col("time"))
    return rows.withColumn("us", us).withColumn("is_late", us < watermark_us)


def nodes_after(before: DataFrame, rows: DataFrame) -> DataFrame:
    """When each node was seen last. Grain: node."""
    gone = F.col("kind") == Kind.OFFLINE.value
    seen = rows.groupBy("node").agg(
        F.max("us").alias("last_us"), F.count("*").alias("rows"), (~F.max_by(gone, "us")).alias("is_up")
    )
    return (
        before.unionByName(seen)
        .groupBy("node")
        .agg(
            F.max("last_us").alias("last_us"),
            F.sum("rows").alias("rows"),
            F.max_by("is_up", "last_us").alias("is_up"),
        )
    )


def readers_after(before: DataFrame, rows: DataFrame) -> DataFrame:
    """Who takes part in which topic. Grain: topic, node."""
    kind, note = F.col("kind"), F.col("note")
    told = (kind == Kind.CONTROL.value) & note.isin(*BEGINS, *ENDS)
    handed = (kind == DELIVERED) & ~note.eqNullSafe(PER_MINUTE)
    mine = handed & (F.col("hops") == 0) & note.isNull()
    signs = rows.where(F.col("topic").isNotNull() & (told | handed)).select(
        "topic",
        "node",
        F.col("us").alias("begin_us"),
        # What was handed over shows that it takes part, unless it says otherwise, now or later.
        F.when(told, F.col("us")).otherwise(F.lit(0)).alias("switched_us"),
        F.when(told, note.isin(*BEGINS)).otherwise(F.lit(True)).alias("is_on"),
        F.coalesce(mine, F.lit(False)).alias("own"),
    )
    return (
        before.unionByName(signs)
        .groupBy("topic", "node")
        .agg(
            F.min("begin_us").alias("begin_us"),
            F.max("switched_us").alias("switched_us"),
            F.max_by("is_on", "switched_us").alias("is_on"),
            F.max("own").alias("own"),
        )
    )


def open_after(before: DataFrame, rows: DataFrame) -> DataFrame:
    """Events that are on their way, with all that happened to them so far. Grain: event, role, node."""
    kind, note = F.col("kind"), F.col("note")
    of_event = kind.isin(PUBLISHED, DELIVERED) & ~note.eqNullSafe(PER_MINUTE) & ~note.eqNullSafe(POLICY)
    named = F.col("topic").isNotNull() & F.col("device").isNotNull() & F.col("seq").isNotNull()
    new = rows.where(of_event & named & ~F.col("is_late") & (F.col("events") > 0)).select(
        "topic",
        "device",
        F.explode(F.sequence(F.col("seq"), F.col("seq") + F.col("events") - 1)).alias("seq"),
        kind.alias("role"),
        "node",
        "us",
        F.lit(1).cast("bigint").alias("times"),
    )
    return (
        before.unionByName(new)
        .groupBy(*_EVENT, "role", "node")
        .agg(F.min("us").alias("us"), F.sum("times").alias("times"))
    )


def events_of(open_: DataFrame) -> DataFrame:
    """Open events with their receivers. Grain: topic, device, seq."""
    is_published = F.col("role") == PUBLISHED
    came = F.struct("node", "us", "times")
    return open_.groupBy(*_EVENT).agg(
        F.min(F.when(is_published, F.col("us"))).alias("published_us"),
        F.min(F.when(is_published, F.col("node"))).alias("author"),
        F.collect_list(F.when(~is_published, came)).alias("arrivals"),
        F.max("us").alias("last_us"),
    )


def is_settled(watermark_us: int) -> Column:
    """Whether nothing more can come of an event; what nobody published waits for its publication as long."""
    return F.coalesce("published_us", "last_us") < watermark_us


def sums_of_events(events: DataFrame, readers: DataFrame, *, final: bool) -> DataFrame:
    """What events amount to: published, delivered, delays; if they are final, also who lacks them."""
    told = events.where(F.col("published_us").isNotNull())
    arrivals = told.select("topic", "published_us", F.explode("arrivals").alias("came")).select(
        "topic", (F.col("came.us") - F.col("published_us")).alias("delay"), "came.times"
    )
    foreign = events.where(F.col("published_us").isNull())
    one, none = F.lit(1).cast("bigint"), F.lit(0)
    parts = [
        _sum(told, F.lit(PUBLISHED), none, one),
        _sum(arrivals, F.lit(DELIVERED), none, one),
        _sum(arrivals, F.lit(DELAY), bin_column(whole_milliseconds(F.col("delay"))), one),
        _sum(arrivals.where("times > 1"), F.lit(REPEATED), none, F.col("times") - 1),
        _sum(foreign, F.lit(UNPUBLISHED), none, F.size("arrivals").cast("bigint")),
    ]
    if final:
        lacking = _lacking(told, readers)
        parts += [_sum(lacking, F.lit(MISSING), none, one), _sum(lacking, F.lit(DELAY), F.lit(NEVER), one)]
    summed = parts[0]
    for part in parts[1:]:
        summed = summed.unionByName(part)
    return added(summed)


def _lacking(events: DataFrame, readers: DataFrame) -> DataFrame:
    """Pairs of an event and a reader that took part when it was published and was not handed it."""
    taking_part = (F.col("begin_us") <= F.col("published_us")) & (
        F.col("is_on") | (F.col("switched_us") > F.col("published_us"))
    )
    owed = (F.col("node") != F.col("author")) | F.col("own")
    pairs = events.join(F.broadcast(readers), "topic").where(taking_part & owed)
    return pairs.where(~F.exists("arrivals", lambda came: came["node"] == F.col("node")))


def sums_of_rows(rows: DataFrame) -> DataFrame:
    """What is counted as it comes: copies, what went wrong and what was put right by reason, late lines."""
    counted = rows.where(F.col("kind").isin([kind.value for kind in COUNTED]))
    detail = F.coalesce("reason", F.when(F.col("kind") == Kind.RESYNC.value, F.col("note")), F.lit(""))
    by_reason = counted.select(
        "topic",
        F.col("kind").alias("name"),
        F.substring(detail, 1, 40).alias("detail"),
        F.lit(0).alias("bin"),
        F.col("events").alias("value"),
    )
    late = _sum(rows.where("is_late"), F.lit(LATE), F.lit(0), F.lit(1).cast("bigint"))
    return added(by_reason.unionByName(late))


def added(sums: DataFrame) -> DataFrame:
    """Equal names added up. Grain: topic, name, detail, bin."""
    return sums.groupBy("topic", "name", "detail", "bin").agg(F.sum("value").cast("bigint").alias("value"))


def _sum(frame: DataFrame, name: Column, bin: Column, value: Column) -> DataFrame:
    return frame.select(
        "topic",
        name.alias("name"),
        F.lit("").alias("detail"),
        bin.cast("int").alias("bin"),
        value.alias("value"),
    )
