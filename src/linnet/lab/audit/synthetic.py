"""Traces of any size whose losses are known beforehand: for tests of the audit, and to measure it.

Each node reads one topic. For each event of its topic it writes two rows, so that counters need no sort:
that it got the event (or a copy, or published it), and that it was delivered. What goes wrong follows from
the number of the pair of event and reader alone; hence the same shape gives the same rows on any number of
machines.
"""

from __future__ import annotations

from msgspec import Struct
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from linnet.core.reasons import Reason
from linnet.lab.stages import schema_of
from linnet.lab.tables import TRACE
from linnet.streams.subscribe import SUBSCRIBED
from linnet.trace.records import Kind

BEGIN_US = 1_700_000_000_000_000
_GAP_US = 5_000
_SETTLED_US = 60_000_000
"""From the last publication to the end of the traces."""


class Shape(Struct, frozen=True, kw_only=True):
    """How large a trace is, and how often something goes wrong in it."""

    topics: int
    readers: int
    """Of each topic."""
    authors: int
    """Readers of a topic that publish in it; they lose nothing."""
    events: int
    """Of each topic."""
    lost_each: int = 100_003
    """One of so many pairs of event and reader is lost without a record."""
    dropped_each: int = 50_021
    """One of so many is dropped with a record."""
    copies_each: int = 3
    """One of so many is a copy that comes beside the first."""
    seed: int = 1

    @property
    def rows(self) -> int:
        """Of the whole trace."""
        return self.topics * self.readers * (2 * self.events + 3)


class Expected(Struct, frozen=True):
    """What an audit must find."""

    published: int
    owed: int
    delivered: int
    lost: int
    explained: int
    duplicates: int


def expected(shape: Shape) -> Expected:
    """What goes wrong, counted without making a row."""
    pairs = shape.events * (shape.readers - shape.authors)
    lost = _hits(pairs, shape.lost_each)
    both = _hits(pairs, shape.lost_each * shape.dropped_each)
    dropped = _hits(pairs, shape.dropped_each) - both
    owed = shape.events * shape.readers
    return Expected(
        published=shape.topics * shape.events,
        owed=shape.topics * owed,
        delivered=shape.topics * (owed - lost - dropped),
        lost=shape.topics * lost,
        explained=shape.topics * dropped,
        duplicates=shape.topics * _hits(pairs, shape.copies_each),
    )


def _hits(pairs: int, each: int) -> int:
    """How many of the numbers 0, 1, … are divisible."""
    return -(-pairs // each)


def synthetic_trace(spark: SparkSession, shape: Shape, parts: int = 16) -> DataFrame:
    """The rows of a shape, in the schema of the trace. Both periods must have no common divisor."""
    pairs = _pairs(spark, shape, parts)
    both = pairs.select("*", F.explode(F.array(F.lit(0), F.lit(1))).alias("slot"))
    rows = both.select(*_columns(shape, _of_pair(shape)))
    frame = rows.unionAll(_frames(spark, shape).select(*_columns(shape, _of_frame(shape))))
    return spark.createDataFrame([], schema_of(TRACE)).unionAll(frame)


def _pairs(spark: SparkSession, shape: Shape, parts: int) -> DataFrame:
    total = shape.topics * shape.events
    readers = F.explode(F.sequence(F.lit(0), F.lit(shape.readers - 1)))
    quiet = shape.readers - shape.authors
    events = spark.range(0, total, 1, parts).select(
        (F.col("id") % shape.topics).cast("int").alias("topic"),
        F.expr(f"id div {shape.topics}").alias("number"),
    )
    pairs = events.select("*", readers.alias("reader")).withColumn(
        "pair", F.col("number") * quiet + (F.col("reader") - shape.authors)
    )
    meek = F.col("reader") >= shape.authors
    return (
        pairs.withColumn("author", (F.col("number") % shape.authors).cast("int"))
        .withColumn("lost", meek & (F.col("pair") % shape.lost_each == 0))
        .withColumn("dropped", meek & ~F.col("lost") & (F.col("pair") % shape.dropped_each == 0))
        .withColumn("copied", meek & (F.col("pair") % shape.copies_each == 0))
        .withColumn(
            "luck", F.pmod(F.xxhash64(F.lit(shape.seed), "topic", "number", "reader"), F.lit(1 << 20))
        )
    )


class _Row(Struct, frozen=True):
    """The columns of a row that are not the same for all."""

    us: Column
    counter: Column
    kind: Column
    of_event: Column
    hops: Column
    reason: Column
    note: Column


def _of_pair(shape: Shape) -> _Row:
    own = F.col("reader") == F.col("author")
    first = F.col("slot") == 0
    none = F.lit(None).cast("string")
    got = (
        F.when(own, Kind.PUBLISHED.value)
        .when(F.col("copied"), Kind.DUPLICATE.value)
        .when(F.col("lost"), Kind.SENT.value)
        .otherwise(Kind.RECEIVED.value)
    )
    came = (
        F.when(F.col("lost"), Kind.SENT.value)
        .when(F.col("dropped"), Kind.DROPPED.value)
        .otherwise(Kind.DELIVERED.value)
    )
    published = F.lit(BEGIN_US + 1_000_000) + F.col("number") * _GAP_US
    delay = F.when(own, F.lit(0)).otherwise(F.lit(1_000) + F.col("luck") % 250_000)
    return _Row(
        us=F.when(first & own, published).otherwise(published + delay),
        counter=F.lit(2) + F.col("number") * 2 + F.col("slot"),
        kind=F.when(first, got).otherwise(came),
        of_event=F.lit(True),
        hops=F.when(own, F.lit(0)).otherwise(F.lit(1) + F.col("luck") % 5).cast("bigint"),
        reason=F.when(~first & F.col("dropped"), Reason.QUEUE_FULL.value).otherwise(none),
        note=none,
    )


def _frames(spark: SparkSession, shape: Shape) -> DataFrame:
    """What stands before and after the events of a node: it comes, it subscribes, it goes."""
    nodes = spark.range(0, shape.topics * shape.readers, 1, 1)
    return nodes.select(
        (F.col("id") % shape.topics).cast("int").alias("topic"),
        F.expr(f"cast(id div {shape.topics} as int)").alias("reader"),
        F.lit(0).cast("bigint").alias("number"),
        F.lit(0).alias("author"),
        F.explode(F.array(F.lit(0), F.lit(1), F.lit(2))).alias("slot"),
    )


def _of_frame(shape: Shape) -> _Row:
    slot, none = F.col("slot"), F.lit(None).cast("string")
    over = BEGIN_US + 1_000_000 + shape.events * _GAP_US + _SETTLED_US
    return _Row(
        us=F.when(slot == 2, F.lit(over)).otherwise(F.lit(BEGIN_US) + slot),
        counter=F.when(slot == 2, F.lit(2 + 2 * shape.events)).otherwise(slot).cast("bigint"),
        kind=F.when(slot == 0, Kind.ONLINE.value)
        .when(slot == 1, Kind.CONTROL.value)
        .otherwise(Kind.OFFLINE.value),
        of_event=F.lit(False),
        hops=F.lit(None).cast("bigint"),
        reason=none,
        note=F.when(slot == 1, F.lit(SUBSCRIBED)).otherwise(none),
    )


def _columns(shape: Shape, row: _Row) -> list[Column]:
    def name(*parts: Column | str) -> Column:
        return F.unhex(F.sha2(F.concat_ws("/", F.lit(str(shape.seed)), *parts), 256))

    topic = name(F.lit("topic"), F.col("topic").cast("string"))
    names_topic = row.of_event | row.note.isNotNull()
    who = F.concat_ws("/", F.col("topic").cast("string"), F.col("author").cast("string"))
    event = name(F.lit("event"), F.col("topic").cast("string"), F.col("number").cast("string"))
    seq = F.expr(f"number div {shape.authors}")
    columns = {
        "time": row.us / 1_000_000,
        "node": name(F.lit("node"), F.col("topic").cast("string"), F.col("reader").cast("string")),
        "counter": row.counter,
        "kind": row.kind,
        "topic": F.when(names_topic, topic),
        "event": F.when(row.of_event, event),
        "device": F.when(row.of_event, F.substring(name(F.lit("device"), who), 1, 8)),
        "seq": F.when(row.of_event, seq),
        "events": F.lit(1).cast("bigint"),
        "peer": F.lit(None).cast("binary"),
        "hops": row.hops,
        "bytes": F.when(row.of_event, F.lit(256).cast("bigint")),
        "reason": row.reason,
        "note": row.note,
    }
    return [column.alias(name) for name, column in columns.items()]
