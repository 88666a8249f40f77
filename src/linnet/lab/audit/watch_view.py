"""What a watch shows: the topics with most wrong in them, what went wrong, and who has not been seen."""

from __future__ import annotations

from msgspec import Struct
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from linnet.lab.audit import watch_state as state
from linnet.lab.bins import quantile

SHOWN = 20


class TopicView(Struct, frozen=True, kw_only=True):
    """A topic as it is now."""

    topic: str
    readers: int
    published: int
    delivered: int
    open: int
    """Events that may still be on their way to somebody."""
    missing: int
    duplicates: int
    p50_ms: int | None
    """Over all deliveries that happened or are missing by now."""
    p99_ms: int | None


class NodeView(Struct, frozen=True):
    """A node as it was seen last."""

    node: str
    last_us: int
    rows: int
    is_up: bool


class View(Struct, frozen=True, kw_only=True):
    """All of it."""

    watermark_us: int
    topics: tuple[TopicView, ...]
    topic_count: int
    wrong: dict[str, int]
    """Events by kind and reason."""
    nodes: tuple[NodeView, ...]
    """Those that were seen least lately, first."""
    node_count: int
    rows: int
    late: int
    bad: int
    unpublished: int
    repeated: int


def view_of(known: state.Known, watermark_us: int) -> View:
    """Read a state; every answer is small whatever its size."""
    events = state.events_of(known.open).cache()
    sums = state.added(
        known.sums.unionByName(state.sums_of_events(events, known.readers, final=False))
    ).cache()
    topics, count = _topics(sums, events, known.readers)
    named = sums.where(F.col("name") != state.DELAY).groupBy("name").agg(F.sum("value").alias("value"))
    totals = {row.name: row.value for row in named.collect()}
    nodes = known.nodes.agg(F.count("*").alias("nodes"), F.sum("rows").alias("rows")).first()
    seen = known.nodes.orderBy("last_us", "node").limit(SHOWN).collect()
    view = View(
        watermark_us=watermark_us,
        topics=topics,
        topic_count=count,
        wrong=_wrong(sums),
        nodes=tuple(NodeView(bytes(row.node).hex(), row.last_us, row.rows, row.is_up) for row in seen),
        node_count=0 if nodes is None else nodes.nodes,
        rows=0 if nodes is None else nodes.rows or 0,
        late=totals.get(state.LATE, 0),
        bad=totals.get(state.BAD, 0),
        unpublished=totals.get(state.UNPUBLISHED, 0),
        repeated=totals.get(state.REPEATED, 0),
    )
    for frame in (events, sums):
        frame.unpersist()
    return view


def _topics(sums: DataFrame, events: DataFrame, readers: DataFrame) -> tuple[tuple[TopicView, ...], int]:
    names = (state.PUBLISHED, state.DELIVERED, state.MISSING, "duplicate")
    of_topic = sums.where(F.col("topic").isNotNull() & F.col("name").isin(*names))
    columns = [
        F.sum(F.when(F.col("name") == name, F.col("value")).otherwise(0)).alias(name) for name in names
    ]
    wide = of_topic.groupBy("topic").agg(*columns)
    read = readers.where("is_on").groupBy("topic").agg(F.count("*").alias("readers"))
    opened = events.where(F.col("published_us").isNotNull()).groupBy("topic").agg(F.count("*").alias("open"))
    joined = wide.join(read, "topic", "left").join(opened, "topic", "left").na.fill(0)
    worst = joined.orderBy(F.desc("missing"), F.desc("published"), "topic").limit(SHOWN).collect()
    shown = [bytes(row.topic) for row in worst]
    delays = (
        sums.where((F.col("name") == state.DELAY) & F.col("topic").isin(shown)) if shown else sums.limit(0)
    )
    bins: dict[bytes, dict[int, int]] = {}
    for row in delays.collect():
        bins.setdefault(bytes(row.topic), {})[row.bin] = row.value
    found = tuple(
        TopicView(
            topic=topic.hex(),
            readers=row.readers,
            published=row.published,
            delivered=row.delivered,
            open=row.open,
            missing=row.missing,
            duplicates=row.duplicate,
            p50_ms=quantile(bins[topic], 0.5) if topic in bins else None,
            p99_ms=quantile(bins[topic], 0.99) if topic in bins else None,
        )
        for topic, row in zip(shown, worst, strict=True)
    )
    return found, joined.count()


def _wrong(sums: DataFrame) -> dict[str, int]:
    kinds = [kind.value for kind in state.COUNTED if kind.value != "duplicate"]
    grouped = (
        sums.where(F.col("name").isin(kinds)).groupBy("name", "detail").agg(F.sum("value").alias("events"))
    )
    rows = grouped.orderBy(F.desc("events"), "name", "detail").limit(SHOWN).collect()
    return {f"{row.name} {row.detail}".strip(): row.events for row in rows}
