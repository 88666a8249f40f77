"""Events one by one: published where, delivered where, each known by its place in its author's chain.

A record may speak of a burst; here each of its events has a row. Ids of 32 bytes are not needed to tell
events apart: topic, device and place are exact, and far smaller once topics and devices are numbered.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from linnet.lab.audit.reading import microseconds
from linnet.streams.ingest import POLICY
from linnet.trace.jsonlines import PER_MINUTE
from linnet.trace.records import Kind

_HOPS_BITS = 12
_NO_HOPS = (1 << _HOPS_BITS) - 1
NO_HOPS = -1


def _of_kind(trace: DataFrame, kind: Kind, chains: DataFrame, nodes: DataFrame, bursts: bool) -> DataFrame:
    """Rows of one kind that name events, with chain and node as numbers and one row for each event."""
    chosen = (F.col("kind") == kind.value) & F.col("seq").isNotNull() & ~F.col("note").eqNullSafe(PER_MINUTE)
    places = F.sequence(F.col("seq"), F.col("seq") + F.col("events") - 1)
    # Taking bursts apart costs an array for each row: most traces have none.
    place = F.explode(places) if bursts else F.col("seq")
    return (
        trace.where(chosen & (F.col("events") > 0))
        .join(F.broadcast(chains), ["topic", "device"])
        .join(F.broadcast(nodes.select("node", "number")), "node")
        .select(
            "chain",
            place.alias("seq"),
            F.col("number").alias("node"),
            microseconds(F.col("time")).alias("us"),
            "hops",
            "event",
            (F.col("seq") + F.col("events") - 1).alias("last"),
        )
    )


def publications_of(signs: DataFrame, chains: DataFrame, nodes: DataFrame) -> DataFrame:
    """What was published, but for policies of streams, which no application is handed. Grain: chain, seq."""
    published = _of_kind(signs, Kind.PUBLISHED, chains, nodes, bursts=True).where(
        ~F.col("note").eqNullSafe(POLICY)
    )
    event = F.when(F.col("seq") == F.col("last"), F.col("event"))
    return published.groupBy("chain", "seq").agg(
        F.min("node").alias("author"), F.min("us").alias("published_us"), F.max(event).alias("event")
    )


def has_bursts(activity: DataFrame) -> bool:
    """Whether any record of a delivery speaks of more than one event."""
    delivered = activity.where(
        (F.col("kind") == Kind.DELIVERED.value) & ~F.col("note").eqNullSafe(PER_MINUTE)
    )
    return not delivered.where(F.col("events") != F.col("rows")).isEmpty()


def arrivals_of(
    trace: DataFrame, chains: DataFrame, nodes: DataFrame, publications: DataFrame, bursts: bool
) -> DataFrame:
    """First deliveries, with their publications. Grain: chain, seq, receiver."""
    delivered = _of_kind(trace, Kind.DELIVERED, chains, nodes, bursts)
    hops = F.least(F.coalesce("hops", F.lit(_NO_HOPS)), F.lit(_NO_HOPS))
    packed = F.shiftleft(F.col("us"), _HOPS_BITS) + hops
    told = publications.select("chain", "seq", "author", "published_us").repartition("chain", "seq")
    return (
        # Together by event and not by receiver: all receivers of an event meet its publication.
        delivered.select("chain", "seq", F.col("node").alias("receiver"), packed.alias("packed"))
        .repartition("chain", "seq")
        .groupBy("chain", "seq", "receiver")
        .agg(F.min("packed").alias("packed"), F.count("*").cast("int").alias("times"))
        .join(told.hint("shuffle_hash"), ["chain", "seq"], "left")
        .select(
            "chain",
            "seq",
            "receiver",
            F.shiftright("packed", _HOPS_BITS).alias("first_us"),
            _hops(F.col("packed").bitwiseAND(F.lit(_NO_HOPS))).alias("hops"),
            "times",
            "author",
            "published_us",
        )
    )


def hops_of(arrivals: DataFrame, chains: DataFrame) -> DataFrame:
    """First deliveries by how many links they came over. Grain: topic, hops."""
    by_chain = arrivals.groupBy("chain", "hops").agg(F.count("*").alias("count"))
    named = by_chain.join(F.broadcast(chains.select("chain", "topic")), "chain")
    return named.groupBy("topic", "hops").agg(F.sum("count").alias("count"))


def _hops(packed: Column) -> Column:
    return F.when(packed == _NO_HOPS, F.lit(NO_HOPS)).otherwise(packed).cast("int")
