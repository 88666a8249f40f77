"""Messages from their pieces, and what their text says."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from linnet.core.errors import RemoteError
from linnet.lab.studies.places.columns import PARSED
from linnet.places.channel.packet import LARGEST_HEADER, parse_section, read_header
from linnet.places.multicast.fragmentation import Flag

_MODIFIER = pa.struct([("operator", pa.string()), ("name", pa.string()), ("value", pa.binary())])
_PARSED = pa.schema(
    [
        ("place", pa.int32()),
        ("message", pa.int64()),
        ("method", pa.string()),
        ("delta", pa.int64()),
        ("hash", pa.binary()),
        ("modifiers", pa.list_(_MODIFIER)),
        ("fault", pa.string()),
    ]
)
Read = tuple[str | None, int | None, bytes | None, list[dict[str, object]] | None, str | None]


def pieces_of(taken: DataFrame) -> DataFrame:
    """Pieces in the order of their offsets; `run` 0 as long as nothing is missing before them."""
    message = Window.partitionBy("place", "message").orderBy("offset", "fragment")
    end = F.col("offset") + F.octet_length("body")
    at = taken.select(
        "place",
        "message",
        "fragment",
        "offset",
        "flags",
        "body",
        end.alias("end"),
        F.lag(end, 1, 0).over(message).alias("before"),
    )
    breaks = F.sum((F.col("offset") != F.col("before")).cast("int"))
    return at.withColumn("run", breaks.over(message.rowsBetween(Window.unboundedPreceding, 0)))


def messages_of(taken: DataFrame) -> DataFrame:
    """Each message as far as it is there from its beginning on. Grain: (place, message).

    `upto`: bytes without a hole; `whole`: whether that is all; `text`: those bytes.
    """
    held = F.col("run") == 0
    last = F.col("flags").bitwiseAND(int(Flag.LAST)) != 0
    begun = F.collect_list(F.when(held, F.struct("offset", "fragment", "body")))
    together = (
        pieces_of(taken)
        .groupBy("place", "message")
        .agg(
            F.count(F.lit(1)).alias("pieces"),
            F.coalesce(F.max(F.when(held, F.col("end"))), F.lit(0)).cast("bigint").alias("upto"),
            F.coalesce(F.max(held & last), F.lit(False)).alias("whole"),
            begun.alias("begun"),
        )
    )
    joined = F.aggregate(F.array_sort("begun"), F.lit(b""), lambda text, piece: F.concat(text, piece["body"]))
    text = F.when(F.size("begun") == 1, F.col("begun")[0]["body"]).otherwise(joined)
    return together.select("place", "message", "pieces", "upto", "whole", text.alias("text"))


def first_texts(taken: DataFrame, flags: int) -> DataFrame:
    """The text of messages with these flags, which most have in one piece. Grain: (place, message)."""
    return messages_of(taken.where(F.col("flags").bitwiseAND(flags) == flags)).select(
        "place", "message", "text"
    )


def parsed_of(messages: DataFrame) -> DataFrame:
    """Header, method and modifiers of each message that has begun. Grain: (place, message)."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            names = (batch.column(name).to_pylist() for name in ("place", "message", "text"))
            rows = [
                (place, message, *found)
                for place, message, text in zip(*names, strict=True)
                if (found := parse_text(text)) is not None
            ]
            columns = list(zip(*rows, strict=True)) if rows else [()] * len(_PARSED)
            arrays = [pa.array(column, field.type) for column, field in zip(columns, _PARSED, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=_PARSED)

    return messages.select("place", "message", "text").mapInArrow(task, PARSED.columns)


def parse_text(text: bytes) -> Read | None:
    """Method, delta, hash, modifiers, or why it cannot be read; None: what is there is too short to say."""
    try:
        found = read_header(text[:LARGEST_HEADER])
        if found is None:
            return None
        header, begin = found
        end = begin + header.modifier_bytes
        if len(text) < end:
            return None
        packet = parse_section(text[begin:end])
    except RemoteError as error:
        return None, None, None, None, error.reason.value
    modifiers: list[dict[str, object]] = [
        {"operator": each.operator, "name": each.name, "value": each.value} for each in packet.modifiers
    ]
    return packet.method, header.delta, header.hash, modifiers, None
