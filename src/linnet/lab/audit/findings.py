"""What an audit found, small enough for one page: sums of everything, and the worst of each kind by name."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from linnet.core.quantiles import within_ms
from linnet.lab.audit.activity import holes_of
from linnet.lab.audit.delays import Standing
from linnet.lab.audit.fates import Fate
from linnet.lab.audit.pipeline import Tables
from linnet.lab.audit.quantiles import everyone
from linnet.lab.bins import NEVER
from linnet.trace.jsonlines import PER_MINUTE
from linnet.trace.records import Kind

SHOWN = 200
"""Readers, topics and nodes that are told one by one; of more, the worst."""
EXAMPLES = 20
_SUMS = (
    "owed",
    "delivered",
    "stored",
    "explained",
    "pending",
    "cut",
    "lost",
    "not_owed",
    "history",
    "unpublished",
    "repeated",
    "duplicates",
    "gaps_filled",
    "resent",
)
_EVERYONE = ("", "")
_TIMES = ("count", "sum_us", "most_us")
_WRONG = (Kind.REJECTED, Kind.DROPPED, Kind.EXPIRED, Kind.EVICTED)


class Latency(Struct, frozen=True, kw_only=True):
    """How long deliveries took that were owed, in milliseconds, rounded up; None if so many never came."""

    p50: int | float | None = None
    """Quantiles are over all that was owed, by nearest rank (`linnet.core.quantiles`)."""
    p90: int | float | None = None
    p95: int | float | None = None
    p99: int | float | None = None
    mean: float | None = None
    """Of those that arrived, as is `most`; None if none did."""
    most: int | float | None = None


class Sums(Struct, frozen=True, kw_only=True):
    """Readers of a topic, or one of them; see `linnet.lab.tables.AUDIT_COMPLETENESS`."""

    topic: str
    receiver: str | None
    """Hex; None for all of the topic."""
    readers: int
    owed: int
    delivered: int
    stored: int
    explained: int
    pending: int
    cut: int
    lost: int
    not_owed: int
    history: int
    unpublished: int
    repeated: int
    duplicates: int
    gaps_filled: int
    resent: int
    published: int
    bins: dict[int, int]
    """Delays of what was owed; what was not delivered never came."""
    latency: Latency


class NodeSeen(Struct, frozen=True, kw_only=True):
    """A node by its trace."""

    node: str
    rows: int
    first_us: int
    last_us: int
    holes: int
    """Rows that are missing between others."""
    begins_at: int
    """Counter of the first row that is left."""
    runs: int
    crashes: int
    """Runs after which another came although it had not said goodbye."""
    reconnects: int


class Counted(Struct, frozen=True):
    """A node that only counts (level `loss`) in a topic: events, not which."""

    topic: str
    node: str
    published: int
    """By others that also only count."""
    delivered: int


class Wrong(Struct, frozen=True):
    """What was recorded as gone wrong, or as put right."""

    kind: str
    reason: str
    note: str
    rows: int
    events: int


class Lost(Struct, frozen=True):
    """One event that a reader never got, without a record."""

    topic: str
    device: str
    seq: int
    author: str
    receiver: str
    published_us: int


class Skew(Struct, frozen=True):
    """Two nodes between whom something arrived before it was sent."""

    author: str
    receiver: str
    least_us: int


class Findings(Struct, frozen=True, kw_only=True):
    """All of it."""

    rows: int
    topics: tuple[Sums, ...]
    readers: tuple[Sums, ...]
    nodes: tuple[NodeSeen, ...]
    topic_count: int
    reader_count: int
    node_count: int
    holes: int
    crashes: int
    wrong: tuple[Wrong, ...]
    mended: tuple[Wrong, ...]
    hops: dict[int, int]
    lost: tuple[Lost, ...]
    skews: tuple[Skew, ...]
    skew_count: int
    counted: tuple[Counted, ...]
    reconnects: dict[str, int]
    """Of the readers that are told: links to peers that they had been linked to before."""
    totals: dict[str, int]
    """Over all topics, told or not, by the names of `Sums`."""
    bins: dict[int, int]
    """Delays of all that was owed, told or not."""
    latency: Latency

    def total(self, name: str) -> int:
        """A sum over all topics; see `Sums`."""
        return self.totals[name]


def find(tables: Tables, skew_us: int) -> Findings:
    """Read the tables of an audit; every answer is small whatever the size of the trace."""
    names = tables.nodes.frame.select(F.col("number"), F.lower(F.hex("node")).alias("name")).cache()
    per_topic = _worst(tables.completeness.frame.drop("receiver"), ["topic"])
    per_reader = _worst(tables.completeness.frame, ["topic", "receiver"])
    published = _published(tables, per_topic + per_reader)
    latencies = _latencies(tables, per_topic + per_reader)
    totals = _totals(tables)
    nodes = _nodes(tables)
    shown_nodes = nodes.orderBy(F.desc("holes"), F.desc("crashes"), "node").limit(SHOWN).collect()
    sums = nodes.agg(F.sum("rows"), F.sum("holes"), F.sum("crashes")).first() or (0, 0, 0)
    skews = _skews(tables.delays.frame, names, skew_us)
    found = Findings(
        rows=sums[0] or 0,
        topics=_sums(per_topic, _bins(tables, per_topic, by_reader=False), published, latencies),
        readers=_sums(per_reader, _bins(tables, per_reader, by_reader=True), published, latencies),
        nodes=tuple(NodeSeen(**row.asDict()) for row in shown_nodes),
        topic_count=tables.completeness.frame.select("topic").distinct().count(),
        reader_count=tables.completeness.rows,
        node_count=tables.nodes.rows,
        holes=sums[1] or 0,
        crashes=sums[2] or 0,
        wrong=_wrong(tables.activity.frame, _WRONG),
        mended=_wrong(tables.activity.frame, (Kind.RESYNC,)),
        hops=_hops(tables.hops.frame),
        lost=_lost(tables.missing.frame, names),
        skews=tuple(Skew(**row.asDict()) for row in skews.limit(EXAMPLES).collect()),
        skew_count=skews.count(),
        counted=_counted(tables.activity.frame, names),
        reconnects=_reconnects(nodes, per_reader),
        totals=totals,
        bins=_all_bins(tables, totals["owed"] - totals["delivered"]),
        latency=latencies.get(_EVERYONE, Latency()),
    )
    names.unpersist()
    return found


def _worst(completeness: DataFrame, key: list[str]) -> list[Row]:
    """Sums by these names, those with losses first, as many as are shown."""
    grouped = completeness.groupBy(*key).agg(
        F.count("*").alias("readers"), *(F.sum(name).alias(name) for name in _SUMS)
    )
    order = [F.desc("lost"), F.desc(F.col("owed") - F.col("delivered")), *map(F.col, key)]
    return grouped.orderBy(*order).limit(SHOWN).collect()


def _sums(
    rows: list[Row],
    bins: dict[tuple[str, str | None], dict[int, int]],
    published: dict[str, int],
    latencies: dict[tuple[str, str], Latency],
) -> tuple[Sums, ...]:
    found = []
    for row in rows:
        values = row.asDict()
        receiver = values.pop("receiver", None)
        delays = dict(bins.get((row.topic, receiver), {}))
        if never := row.owed - row.delivered:
            delays[NEVER] = never
        found.append(
            Sums(
                receiver=receiver,
                bins=delays,
                published=published.get(row.topic, 0),
                latency=latencies.get((row.topic, receiver or ""), Latency()),
                **values,
            )
        )
    return tuple(found)


def _bins(tables: Tables, rows: list[Row], by_reader: bool) -> dict[tuple[str, str | None], dict[int, int]]:
    """The delays of those that are shown."""
    topics = sorted({row.topic for row in rows})
    names = tables.nodes.frame.select(F.col("number").alias("receiver"), F.lower(F.hex("node")).alias("name"))
    delays = tables.delays.frame.where(F.col("standing") == Standing.OWED.value).withColumn(
        "topic", F.lower(F.hex("topic"))
    )
    delays = delays.where(F.col("topic").isin(topics)).join(F.broadcast(names), "receiver")
    if by_reader:
        delays = delays.where(F.col("name").isin(sorted({row.receiver for row in rows})))
    key = ["topic", "name"] if by_reader else ["topic"]
    found: dict[tuple[str, str | None], dict[int, int]] = {}
    for row in delays.groupBy(*key, "bin").agg(F.sum("count").alias("events")).collect():
        found.setdefault((row.topic, row.name if by_reader else None), {})[row.bin] = row.events
    return found


def _latencies(tables: Tables, told: list[Row]) -> dict[tuple[str, str], Latency]:
    """Of those that are told and of all together, by the names of `linnet.lab.tables.AUDIT_QUANTILES`."""
    topics = ["", *sorted({row.topic for row in told})]
    receivers = ["", *sorted({row.receiver for row in told if "receiver" in row})]
    shown = F.col("topic").isin(topics) & F.col("receiver").isin(receivers)
    found: dict[tuple[str, str], dict[str, int | float]] = {}
    for row in tables.quantiles.frame.where(shown & F.col("us").isNotNull()).collect():
        found.setdefault((row.topic, row.receiver), {})[f"p{row.percent}"] = within_ms(row.us)
    names = tables.nodes.frame.select(F.col("number").alias("receiver"), F.lower(F.hex("node")).alias("name"))
    named = (
        tables.delays.frame.where(F.col("standing") == Standing.OWED.value)
        .join(F.broadcast(names), "receiver")
        .select(F.lower(F.hex("topic")).alias("topic"), F.col("name").alias("receiver"), *_TIMES)
    )
    for row in (
        everyone(named, *_TIMES)
        .where(shown)
        .groupBy("topic", "receiver")
        .agg(
            F.sum("count").alias("number"), F.sum("sum_us").alias("sum_us"), F.max("most_us").alias("most_us")
        )
        .collect()
    ):
        each = found.setdefault((row.topic, row.receiver), {})
        each["mean"] = row.sum_us / row.number / 1000
        each["most"] = within_ms(max(0, row.most_us))
    return {whose: Latency(**numbers) for whose, numbers in found.items()}


def _totals(tables: Tables) -> dict[str, int]:
    """Sums over every topic and reader: not over those that are told alone."""
    row = tables.completeness.frame.agg(*(F.sum(name).alias(name) for name in _SUMS)).first()
    sums = {} if row is None else row.asDict()
    return {"published": tables.publications.rows, **{name: sums.get(name) or 0 for name in _SUMS}}


def _all_bins(tables: Tables, never: int) -> dict[int, int]:
    owed = tables.delays.frame.where(F.col("standing") == Standing.OWED.value)
    rows = owed.groupBy("bin").agg(F.sum("count").alias("events")).collect()
    return {row.bin: row.events for row in rows} | ({NEVER: never} if never else {})


def _published(tables: Tables, told: list[Row]) -> dict[str, int]:
    """Of the topics that are told."""
    chains = tables.chains.frame.select("chain", F.lower(F.hex("topic")).alias("topic"))
    counts = tables.publications.frame.groupBy("chain").agg(F.count("*").alias("events"))
    summed = counts.join(chains, "chain").groupBy("topic").agg(F.sum("events").alias("events"))
    of_these = summed.where(F.col("topic").isin(sorted({row.topic for row in told})))
    return {row.topic: row.events for row in of_these.collect()}


def _nodes(tables: Tables) -> DataFrame:
    goodbyes = tables.activity.frame.where(F.col("kind") == Kind.OFFLINE.value)
    byes = goodbyes.groupBy("node").agg(
        F.count_distinct("session").alias("byes"), F.max("session").alias("last")
    )
    links = tables.links.frame
    runs = F.greatest(F.size("sessions"), F.lit(1))
    # The last run may be going on.
    open_end = (F.coalesce("last", F.lit(0)) < runs).cast("int")
    return (
        tables.nodes.frame.withColumnRenamed("node", "name")
        .withColumnRenamed("number", "node")
        .join(holes_of(tables.activity.frame), "node")
        .join(byes, "node", "left")
        .join(links, "node", "left")
        .select(
            F.lower(F.hex("name")).alias("node"),
            "rows",
            "first_us",
            "last_us",
            "holes",
            "begins_at",
            runs.alias("runs"),
            F.greatest(runs - F.coalesce("byes", F.lit(0)) - open_end, F.lit(0)).alias("crashes"),
            F.coalesce(F.col("ups") - F.col("peers"), F.lit(0)).alias("reconnects"),
        )
    )


def _reconnects(nodes: DataFrame, readers: list[Row]) -> dict[str, int]:
    told = nodes.where(F.col("node").isin(sorted({row.receiver for row in readers})))
    return {row.node: row.reconnects for row in told.select("node", "reconnects").collect()}


def _wrong(activity: DataFrame, kinds: Iterable[Kind]) -> tuple[Wrong, ...]:
    chosen = activity.where(F.col("kind").isin([kind.value for kind in kinds]))
    none = F.lit("")
    grouped = chosen.groupBy(
        "kind", F.coalesce("reason", none).alias("reason"), F.coalesce("note", none).alias("note")
    ).agg(F.sum("rows").alias("rows"), F.sum("events").alias("events"))
    rows = grouped.orderBy(F.desc("events"), "kind", "reason", "note").limit(SHOWN).collect()
    return tuple(Wrong(**row.asDict()) for row in rows)


def _hops(hops: DataFrame) -> dict[int, int]:
    grouped = hops.groupBy("hops").agg(F.sum("count").alias("events"))
    return {row.hops: row.events for row in grouped.orderBy("hops").collect()}


def _lost(missing: DataFrame, names: DataFrame) -> tuple[Lost, ...]:
    """The first ones, by time."""
    lost = missing.where(F.col("fate") == Fate.LOST.value)
    first = lost.orderBy("published_us", "topic", "device", "seq", "receiver").limit(EXAMPLES)
    authors = names.select(F.col("number").alias("author"), F.col("name").alias("author_name"))
    receivers = names.select(F.col("number").alias("receiver"), F.col("name").alias("receiver_name"))
    rows = first.join(authors, "author").join(receivers, "receiver")
    rows = rows.orderBy("published_us", "topic", "device", "seq", "receiver")
    return tuple(
        Lost(row.topic.hex(), row.device.hex(), row.seq, row.author_name, row.receiver_name, row.published_us)
        for row in rows.collect()
    )


def _skews(delays: DataFrame, names: DataFrame, skew_us: int) -> DataFrame:
    pairs = delays.where(F.col("early").isNotNull()).groupBy(F.col("early").alias("author"), "receiver")
    least = pairs.agg(F.min("least_us").alias("least_us")).where(F.col("least_us") < -skew_us)
    authors = names.select(F.col("number").alias("author"), F.col("name").alias("author_name"))
    receivers = names.select(F.col("number").alias("receiver"), F.col("name").alias("receiver_name"))
    return (
        least.join(authors, "author")
        .join(receivers, "receiver")
        .select(F.col("author_name").alias("author"), F.col("receiver_name").alias("receiver"), "least_us")
        .orderBy("least_us", "author", "receiver")
    )


def _counted(activity: DataFrame, names: DataFrame) -> tuple[Counted, ...]:
    """Nodes at level `loss`, by their counts per minute."""
    minutes = activity.where(F.col("note").eqNullSafe(PER_MINUTE) & F.col("topic").isNotNull())
    kind, events = F.col("kind"), F.col("events")
    each = minutes.groupBy("topic", "node").agg(
        F.sum(F.when(kind == Kind.PUBLISHED.value, events).otherwise(0)).alias("own"),
        F.sum(F.when(kind == Kind.DELIVERED.value, events).otherwise(0)).alias("delivered"),
    )
    all_of = each.groupBy("topic").agg(F.sum("own").alias("all"))
    rows = (
        each.join(all_of, "topic")
        .join(names.withColumnRenamed("number", "node"), "node")
        .where(F.col("delivered") > 0)
        .orderBy(F.desc(F.col("all") - F.col("own") - F.col("delivered")), "name")
        .limit(SHOWN)
    )
    return tuple(
        Counted(row.topic.hex(), row.name, row["all"] - row.own, row.delivered) for row in rows.collect()
    )
