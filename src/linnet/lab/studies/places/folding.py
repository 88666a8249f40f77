"""State at any message: which messages change it, what each variable was from when to when.

Plain assignments are a matter of order, so windows tell them. What `+` and `-` come to depends on the value
before, and is folded variable by variable with the shipped operators.
"""

from __future__ import annotations

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from linnet.core.errors import RemoteError
from linnet.places.channel.packet import ASSIGN, TRANSIENT, Modifier
from linnet.places.channel.state import operate

_FOLDED = pa.schema(
    [
        ("place", pa.int32()),
        ("epoch", pa.int64()),
        ("name", pa.string()),
        ("message", pa.int64()),
        ("value", pa.binary()),
    ]
)
_COLUMNS = "place INT, epoch BIGINT, name STRING, message BIGINT, value BINARY"


def steps_of(parsed: DataFrame) -> DataFrame:
    """Messages that change state, and which of them count. Grain: (place, message).

    Each names the one before it. An `epoch` begins with one that begins anew; within it the first that
    does not rest on the one before it, which is therefore missing, and all behind it wait for ever.
    """
    line = Window.partitionBy("place").orderBy("message")
    fresh = F.col("delta") == 0
    rests = fresh | (F.col("message") - F.col("delta") == F.lag("message", 1, 0).over(line))
    at = parsed.where("delta IS NOT NULL").select(
        "place",
        "message",
        "hash",
        "modifiers",
        F.sum(fresh.cast("bigint")).over(line).alias("epoch"),
        rests.alias("rests"),
    )
    epoch = Window.partitionBy("place", "epoch").orderBy("message")
    broken = F.sum((~F.col("rests")).cast("int")).over(epoch)
    applied = (F.col("epoch") > 0) & (broken == 0)
    return at.select("place", "message", "epoch", applied.alias("applied"), "hash", "modifiers")


def intervals_of(steps: DataFrame) -> DataFrame:
    """From when to when each variable had which value. Grain: (place, name, since)."""
    changes = _changes(steps)
    settled = Window.partitionBy("place", "epoch", "name")
    marked = changes.withColumn("folds", F.max(F.col("operator") != ASSIGN).over(settled))
    plain = marked.where(~F.col("folds")).groupBy("place", "epoch", "name", "message")
    assigned = plain.agg(F.max_by("value", "seq").alias("value"))
    folding = marked.where("folds").select("place", "epoch", "name", "message", "seq", "operator", "value")
    folded = folding.groupBy("place").applyInArrow(_fold, _COLUMNS)
    return _bounded(assigned.unionByName(folded), steps)


def _changes(steps: DataFrame) -> DataFrame:
    """Modifiers that count, one by one, in their order."""
    each = steps.where("applied").select(
        "place", "epoch", "message", F.posexplode("modifiers").alias("seq", "modifier")
    )
    return each.select("place", "epoch", "message", "seq", "modifier.*").where(F.col("operator") != TRANSIENT)


def _bounded(written: DataFrame, steps: DataFrame) -> DataFrame:
    """Each value ends with the next one of its variable, or with its epoch; an empty one is none."""
    ends = steps.where("epoch > 0").groupBy("place", (F.col("epoch") - 1).alias("epoch"))
    behind = ends.agg(F.min("message").alias("end"))
    variable = Window.partitionBy("place", "epoch", "name").orderBy("message")
    following = F.lead("message").over(variable).alias("following")
    at = written.select("place", "epoch", "name", "message", "value", following)
    joined = at.join(behind, ["place", "epoch"], "left")
    until = F.coalesce("following", "end")
    return joined.where(F.octet_length("value") > 0).select(
        "place", "name", F.col("message").alias("since"), until.alias("until"), "value"
    )


def _fold(key: tuple[pa.Scalar, ...], table: pa.Table) -> pa.Table:
    """All values of the variables of a place, with what an operation makes of the value before it."""
    names = ("epoch", "message", "seq", "operator", "name", "value")
    rows = sorted(zip(*(table[each].to_pylist() for each in names), strict=True))
    current: dict[tuple[int, str], bytes] = {}
    written: dict[tuple[int, str, int], bytes] = {}
    for epoch, message, _, operator, name, value in rows:
        if operator != ASSIGN:
            try:
                value = operate(Modifier(operator, name, value), current.get((epoch, name), b""))
            except RemoteError:  # such an operation is left out everywhere
                continue
        current[epoch, name] = written[epoch, name, message] = value
    place = [key[0].as_py()] * len(written)
    columns = [place, *([each[at] for each in written] for at in range(3)), list(written.values())]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _FOLDED, strict=True)]
    return pa.Table.from_arrays(arrays, schema=_FOLDED)


def state_at(intervals: DataFrame, wanted: DataFrame) -> DataFrame:
    """Variables as they were behind each wanted message. Grain: (place, message, name)."""
    among = (F.col("since") <= F.col("message")) & (
        F.col("until").isNull() | (F.col("message") < F.col("until"))
    )
    asked = wanted.select("place", "message").distinct()
    return asked.join(intervals, "place").where(among).select("place", "message", "name", "value")


def digest(name: str = "name", value: str = "value") -> Column:
    """The hash of all variables of a group, in hexadecimal: as `State.digest`, in the words of SQL."""
    ordered = F.array_sort(F.collect_list(F.struct(name, value)))

    def encoded(variable: Column) -> Column:
        key, text = variable[name].cast("binary"), variable[value]
        return F.concat(_length(key, 8), key, _length(text, 16), text)

    data = F.aggregate(ordered, F.lit(b""), lambda before, each: F.concat(before, encoded(each)))
    return F.sha2(data, 256)


def _length(data: Column, digits: int) -> Column:
    return F.unhex(F.lpad(F.hex(F.octet_length(data).cast("bigint")), digits, "0"))


def digests_at(intervals: DataFrame, wanted: DataFrame) -> DataFrame:
    """The hash of the whole state behind each wanted message. Grain: (place, message)."""
    asked = wanted.select("place", "message").distinct()
    found = state_at(intervals, asked).groupBy("place", "message").agg(digest().alias("digest"))
    nothing = F.sha2(F.lit(b""), 256)
    return asked.join(found, ["place", "message"], "left").select(
        "place", "message", F.coalesce("digest", nothing).alias("digest")
    )


def hash_faults(steps: DataFrame, intervals: DataFrame) -> DataFrame:
    """Every hash that a counting message carries, recomputed. Grain: (place, message)."""
    told = steps.where("applied AND hash IS NOT NULL").select(
        "place", "message", F.lower(F.hex("hash")).alias("told")
    )
    found = digests_at(intervals, told)
    return told.join(found, ["place", "message"]).select(
        "place", "message", (F.col("told") == F.col("digest")).alias("right")
    )
