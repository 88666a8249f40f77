"""Records that say why events were not handed over, and which of them speak of which event.

A record speaks of a range of places in a chain, or of an event by name. Ranges are cut into blocks: a
block is as long as a power of two and begins at a multiple of its length, so that a range is at most two
blocks of each length. An event looks for the one block of each length that it lies in. Both sides meet by
equality alone, and each event meets at most one row for each length and role: the work grows with the
losses, however many there are in one chain and however much ranges overlap
(docs/adr/0031-what-the-lab-may-claim.md).
"""

from __future__ import annotations

from enum import IntEnum

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from linnet.core.reasons import Reason
from linnet.lab.audit.reading import microseconds
from linnet.trace.jsonlines import PER_MINUTE
from linnet.trace.records import Kind

AT_RECEIVER = (Kind.REJECTED, Kind.DROPPED, Kind.EXPIRED, Kind.EVICTED, Kind.STORED)
ELSEWHERE = (Kind.REJECTED, Kind.DROPPED, Kind.EXPIRED)
"""What its author records of an event that others did not get. Where nobody at all was handed it, the same
of whoever had it in hand last: a relay that refused it. That a log let one go later says nothing."""

_ANYONE = -1
_BY_NAME = -1
_PAIR = ("chain", "seq", "receiver")
_MEETING = ("topic", "subject", "level", "block", "role", "who")
"""Of a place: its device, the logarithm of a block's length, its number. Of a name: the event, -1 and 0."""
_AT = "array<struct<subject: binary, level: int, block: bigint>>"
_TO = "array<struct<role: int, who: int>>"


class _Role(IntEnum):
    """Who said it, as seen from the reader that lacks an event."""

    READER = 0
    AUTHOR = 1
    ANYONE = 2
    """Counts where nobody was handed the event."""


def excuses_of(trace: DataFrame, nodes: DataFrame) -> DataFrame:
    """Records that say why events were not handed over; of a range, its ends."""
    kinds = [kind.value for kind in AT_RECEIVER]
    chosen = F.col("kind").isin(kinds) & ~F.col("note").eqNullSafe(PER_MINUTE) & F.col("topic").isNotNull()
    names = nodes.select("node", F.col("number"))
    return (
        trace.where(chosen)
        .join(F.broadcast(names), "node")
        .select(
            F.col("number").alias("by"),
            "topic",
            "device",
            F.col("seq").alias("first"),
            (F.col("seq") + F.col("events") - 1).alias("last"),
            F.col("event").alias("named"),
            F.col("kind").alias("kind"),
            F.col("reason").alias("reason"),
            microseconds(F.col("time")).alias("said_us"),
        )
    )


def with_excuses(pairs: DataFrame, excuses: DataFrame, grace_us: int) -> DataFrame:
    """Pairs with the kind and reason of one record that explains them, the strongest.

    What was stored is not lost at all, so that is the strongest.
    """
    best = meetings_of(pairs, excuses).groupBy(*_PAIR).agg(F.min("said").alias("met"))
    late = F.filter("slow", lambda each: F.col("published_us") >= each["us"] - grace_us)
    said = F.least(F.col("met"), F.array_min(F.transform(late, lambda each: each["said"])))
    return (
        pairs.join(best, list(_PAIR), "left")
        .join(_slow(excuses), ["topic", "receiver"], "left")
        .withColumn("said", said)
        .select(*pairs.columns, F.col("said.kind").alias("kind"), F.col("said.reason").alias("reason"))
    )


def meetings_of(pairs: DataFrame, excuses: DataFrame) -> DataFrame:
    """Each pair beside what was said of it: for each length of blocks and each role one row at most."""
    return _sought(pairs, excuses).join(_spoken(excuses), list(_MEETING)).select(*_PAIR, "said")


def _slow(excuses: DataFrame) -> DataFrame:
    """Subscriptions that ended because their readers were slow: those are handed nothing from then on."""
    slow = excuses.where(F.col("reason") == Reason.SUBSCRIBER_SLOW.value)
    first = slow.groupBy("topic", F.col("by").alias("receiver"), _said().alias("said")).agg(
        F.min("said_us").alias("us")
    )
    return first.groupBy("topic", "receiver").agg(F.collect_list(F.struct("us", "said")).alias("slow"))


def _said() -> Column:
    return F.struct((F.col("kind") != Kind.STORED.value).alias("other"), "kind", "reason")


def _spoken(excuses: DataFrame) -> DataFrame:
    """What was said of each block and name, to each role: the strongest. Grain: `_MEETING`."""
    first, last = F.col("first"), F.col("last")
    in_place = F.when(F.col("device").isNotNull() & (first <= last), _blocks(first, last))
    roles = F.when(
        F.col("kind").isin([kind.value for kind in ELSEWHERE]),
        F.array(_to(_Role.READER, F.col("by")), _to(_Role.AUTHOR, F.col("by")), _to(_Role.ANYONE)),
    ).otherwise(F.array(_to(_Role.READER, F.col("by"))))
    at = _together(_AT, in_place, _by_name(F.col("named")))
    return (
        excuses.select("topic", _said().alias("said"), roles.alias("roles"), F.explode(at).alias("at"))
        .select("topic", "said", "at.*", F.explode("roles").alias("to"))
        .select("topic", "subject", "level", "block", "to.role", "to.who", "said")
        .groupBy(*_MEETING)
        .agg(F.min("said").alias("said"))
    )


def _sought(pairs: DataFrame, excuses: DataFrame) -> DataFrame:
    """Where something may have been said of each pair. Grain: that of pairs and `_MEETING`."""
    lengths = excuses.where(F.col("first") <= F.col("last")).select(
        _lengths(F.col("first"), F.col("last")).alias("lengths")
    )
    most = lengths.agg(F.coalesce(F.max("lengths"), F.lit(1)).alias("lengths"))
    levels = F.sequence(F.lit(0), F.col("lengths") - 1)
    places = F.transform(levels, lambda level: _at(F.col("device"), level, _shifted(F.col("seq"), level)))
    heard = F.array(_to(_Role.READER, F.col("receiver")), _to(_Role.AUTHOR, F.col("author")))
    nobody = F.when(F.col("served") == 0, F.array(_to(_Role.ANYONE)))
    at = _together(_AT, places, _by_name(F.col("event")))
    return (
        pairs.crossJoin(F.broadcast(most))
        .select("topic", *_PAIR, _together(_TO, heard, nobody).alias("roles"), F.explode(at).alias("at"))
        .select("topic", *_PAIR, "at.*", F.explode("roles").alias("to"))
        .select(*_PAIR, "topic", "subject", "level", "block", "to.role", "to.who")
    )


def _blocks(first: Column, last: Column) -> Column:
    """The fewest blocks that make up a range: those of a segment tree, at most two of each length."""

    def of_length(level: Column) -> Column:
        begin, end = -_shifted(-first, level), _shifted(last + 1, level)
        left = F.when((begin < end) & (begin % 2 == 1), _at(F.col("device"), level, begin))
        right = F.when((begin < end) & (end % 2 == 1), _at(F.col("device"), level, end - 1))
        return F.array(left, right)

    levels = F.sequence(F.lit(0), _lengths(first, last) - 1)
    return F.filter(F.flatten(F.transform(levels, of_length)), lambda block: block.isNotNull())


def _lengths(first: Column, last: Column) -> Column:
    """How many lengths of blocks a range may have: 1 for one event, 2 for up to three, and so on."""
    return F.length(F.bin(last - first + 1))


def _shifted(number: Column, by: Column) -> Column:
    return F.call_function("shiftright", number, by)


def _by_name(event: Column) -> Column:
    return F.when(event.isNotNull(), F.array(_at(event, F.lit(_BY_NAME), F.lit(0))))


def _at(subject: Column, level: Column, block: Column) -> Column:
    return F.struct(
        subject.alias("subject"), level.cast("int").alias("level"), block.cast("bigint").alias("block")
    )


def _to(role: _Role, who: Column | None = None) -> Column:
    told = F.lit(_ANYONE) if who is None else who
    return F.struct(F.lit(int(role)).alias("role"), told.cast("int").alias("who"))


def _together(kind: str, *arrays: Column) -> Column:
    """The elements of all arrays that are not null."""
    none = F.array().cast(kind)
    return F.concat(*(F.coalesce(each.cast(kind), none) for each in arrays))
