"""What is counted in rows, against a plain loop; the hash knows content and order, not batches."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from linnet.lab.generate.measure import CHATS, measured_chats, string_parts, tally_batches
from linnet.lab.stages import schema_of
from linnet.lab.tables import MESSAGES

Said = tuple[str, int, str, int, str, str]
NAMES = ["chat", "ts", "user", "chars", "kind", "granularity"]
SCHEMA = pa.schema(
    [
        ("chat", pa.string()),
        ("ts", pa.int64()),
        ("user", pa.string()),
        ("chars", pa.int32()),
        ("kind", pa.string()),
        ("granularity", pa.string()),
    ]
)


@st.composite
def chats(draw: st.DrawFn) -> list[Said]:
    """A few chats one after the other."""
    rows: list[Said] = []
    for name in draw(st.lists(st.sampled_from("abcde"), min_size=1, max_size=4, unique=True)):
        ts = 10_000
        for pause in draw(st.lists(st.integers(0, 150), min_size=1, max_size=8)):
            ts += pause * 1000
            user = draw(st.sampled_from(["u1", "u2", "ü"]))
            kind = draw(st.sampled_from(["text", "image"]))
            rows.append((name, ts, user, draw(st.integers(0, 9)), kind, "s"))
    return rows


def batch_of(rows: list[Said]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([dict(zip(NAMES, row, strict=True)) for row in rows], schema=SCHEMA)


def tallied(rows: list[Said], size: int = 1000) -> list[dict[str, object]]:
    whole = batch_of(rows)
    batches = [whole.slice(start, size) for start in range(0, len(rows), size)]
    return [row for batch in tally_batches(batches) for row in batch.to_pylist()]


def counted(rows: list[Said]) -> dict[str, object]:
    pauses = [b[1] - a[1] for a, b in pairwise(rows)]
    return {
        "chat": rows[0][0],
        "members": len({row[2] for row in rows}),
        "messages": len(rows),
        "granularity": "s",
        "texts": sum(row[4] == "text" for row in rows),
        "chars": sum(row[3] for row in rows),
        "duration_ms": rows[-1][1] - rows[0][1],
        "pauses_60s": sum(pause < 60_000 for pause in pauses),
        "pauses_120s": sum(pause < 120_000 for pause in pauses),
    }


@given(chats())
def test_counts_are_those_of_a_loop(rows: list[Said]) -> None:
    names = dict.fromkeys(row[0] for row in rows)
    found = [{name: value for name, value in row.items() if name != "sha256"} for row in tallied(rows)]
    assert found == [counted([row for row in rows if row[0] == name]) for name in names]


@given(chats(), st.integers(1, 5))
def test_batches_make_no_difference(rows: list[Said], size: int) -> None:
    assert tallied(rows, size) == tallied(rows)


ROWS: list[Said] = [
    ("a", 1_000, "u1", 3, "text", "s"),
    ("a", 2_000, "u2", 0, "image", "s"),
    ("a", 9_000, "u1", 5, "text", "s"),
]


@pytest.mark.parametrize(
    ("column", "value"), [(1, 2_001), (2, "u3"), (3, 1), (4, "video"), (5, "min")], ids=NAMES[1:]
)
def test_every_column_is_in_the_hash(column: int, value: object) -> None:
    changed = list(ROWS)
    changed[1] = (*ROWS[1][:column], value, *ROWS[1][column + 1 :])  # type: ignore[assignment]
    assert tallied(changed)[0]["sha256"] != tallied(ROWS)[0]["sha256"]


def test_strings_that_join_alike_are_told_apart() -> None:
    rows: list[Said] = [("a", 1, "u1", 0, "text", "s"), ("a", 1, "1u", 0, "text", "s")]
    other: list[Said] = [("a", 1, "u11", 0, "text", "s"), ("a", 1, "u", 0, "text", "s")]
    assert tallied(rows)[0]["sha256"] != tallied(other)[0]["sha256"]


def test_the_hash_stays_as_it_is() -> None:
    assert tallied(ROWS)[0]["sha256"] == WRITTEN_DOWN


WRITTEN_DOWN = "bb08538ab29d3f4357be2c446e6b62edb21fae4a7c3b210f666d7439596eef7a"


def test_strings_of_a_slice() -> None:
    lengths, text = string_parts(pa.array(["a", "bcd", "", "ü", "e"]).slice(1, 3))
    assert (lengths.tolist(), bytes(text)) == ([3, 0, 2], "bcdü".encode())


def test_time_that_goes_back_is_an_error() -> None:
    with pytest.raises(ValueError, match="a: its messages are not in order"):
        tallied([ROWS[1], ROWS[0]])
    with pytest.raises(ValueError, match="a: its messages are not in order"):
        tallied([ROWS[1], ROWS[0]], 1)


def test_a_table_is_measured_by_partition(spark: SparkSession) -> None:
    frame = spark.createDataFrame(ROWS, schema_of(MESSAGES)).coalesce(1)
    found = measured_chats(frame)
    assert found.schema == schema_of(CHATS)
    assert [row.asDict() for row in found.collect()] == tallied(ROWS)
