"""Events one by one: published where, delivered where, each known by its place in its author's chain.

A record may speak of a burst; here each of its events has a row. Ids of 32 bytes are not needed to tell
events apart: topic, device and place are exact, and far smaller once topics and devices are numbered.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from linnet.lab.audit.reading import microseconds
from linnet.streams.policy import POLICY
from linnet.trace.jsonlines import PER_MINUTE
from linnet.trace.records import Kind

_HOPS_BITS = 12
_NO_HOPS = (1 << _HOPS_BITS) - 1
NO_HOPS = -1


def _of_kind(trace: DataFrame, kind: Kind, chains: DataFrame, nodes: DataFrame) -> DataFrame:
    """Rows of one kind that name events, with chain and node as numbers and one row for each event."""
    chosen = (F.col("kind") == kind.value) & F.col("seq").isNotNull() & ~F.col("note").eqNullSafe(PER_MINUTE)
    places = F.sequence(F.col("seq"), F.col("seq") + F.col("events") - 1)
    single = F.col("events") == 1
    return (
        trace.where(chosen & (F.col("events") > 0))
        .join(F.broadcast(chains), ["topic", "device"])
        .join(F.broadcast(nodes.select("node", "number")), "node")
        .select(
            "chain",
            F.explode(F.when(single, F.array("seq")).otherwise(places)).alias("seq"),
            F.col("number").alias("node"),
            microseconds(F.col("time")).alias("us"),
            "hops",
            "event",
            "note",
            (F.col("seq") + F.col("events") - 1).alias("last"),
        )
    )


def publications_of(trace: DataFrame, chains: DataFrame, nodes: DataFrame) -> DataFrame:
    """What was published, but for policies of streams, which no application is handed. Grain: chain, seq."""
    published = _of_kind(trace, Kind.PUBLISHED, chains, nodes).where(~F.col("note").eqNullSafe(POLICY))
    event = F.when(F.col("seq") == F.col("last"), F.col("event"))
    return published.groupBy("chain", "seq").agg(
        F.min("node").alias("author"), F.min("us").alias("published_us"), F.max(event).alias("event")
    )


def arrivals_of(trace: DataFrame, chains: DataFrame, nodes: DataFrame) -> DataFrame:
    """First deliveries, and how often each event was handed over. Grain: chain, seq, receiver."""
    delivered = _of_kind(trace, Kind.DELIVERED, chains, nodes)
    packed = F.shiftleft(F.col("us"), _HOPS_BITS) + F.least(
        F.coalesce("hops", F.lit(_NO_HOPS)), F.lit(_NO_HOPS)
    )
    return (
        # Together by event and not by receiver: whatever follows asks for all receivers of an event.
        delivered.select("chain", "seq", F.col("node").alias("receiver"), packed.alias("packed"))
        .repartition("chain", "seq")
        .groupBy("chain", "seq", "receiver")
        .agg(F.min("packed").alias("packed"), F.count("*").cast("int").alias("times"))
        .select(
            "chain",
            "seq",
            "receiver",
            F.shiftright("packed", _HOPS_BITS).alias("first_us"),
            _hops(F.col("packed").bitwiseAND(F.lit(_NO_HOPS))).alias("hops"),
            "times",
        )
    )


def _hops(packed: Column) -> Column:
    return F.when(packed == _NO_HOPS, F.lit(NO_HOPS)).otherwise(packed).cast("int")
