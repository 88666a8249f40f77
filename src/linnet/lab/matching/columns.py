"""The tables of matching, from records to pairs."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa  # type: ignore[import-untyped]

from linnet.lab.tables import Table

RECORDS = Table(
    "match_records",
    1,
    "record BIGINT NOT NULL, stream STRING NOT NULL, attributes STRING NOT NULL",
    ("record",),
)
"""What streams say, each record as the attributes of an event."""

EVENTS = Table("match_events", 1, "event BIGINT NOT NULL, attributes STRING NOT NULL", ("event",))

PREDICATES = Table(
    "match_predicates", 1, "subscription BIGINT NOT NULL, predicate STRING NOT NULL", ("subscription",)
)

HOMES = Table(
    "match_homes",
    1,
    "subscription BIGINT NOT NULL, predicate STRING NOT NULL, name STRING NOT NULL, kind STRING NOT NULL, "
    "low DOUBLE NOT NULL, high DOUBLE NOT NULL",
    ("subscription",),
)
"""Where each predicate lives: at the condition that fewest events satisfy, from `low` to `high`."""

PLACED = Table(
    "match_placed",
    1,
    "piece INT NOT NULL, subscription BIGINT NOT NULL, predicate STRING NOT NULL",
    ("piece", "subscription"),
)
"""Predicates in pieces; one whose range reaches over a cut is in each piece that it touches."""

MATCHES = Table(
    "match_matches",
    1,
    "event BIGINT NOT NULL, piece INT NOT NULL, subscriptions ARRAY<BIGINT> NOT NULL",
    ("event", "piece"),
)
"""Who gets an event, by the pieces where that was found, each subscription once; no row where nobody does."""

PAIRS = Table(
    "match_pairs",
    1,
    "event BIGINT NOT NULL, subscription BIGINT NOT NULL",
    ("event", "subscription"),
)
"""The same, pair by pair: of samples only."""

_CONDITION = (
    "STRUCT<name: STRING, kind: STRING, low: DOUBLE, high: DOUBLE, low_open: BOOLEAN, high_open: BOOLEAN, "
    "text: STRING, west: DOUBLE, east: DOUBLE>"
)
WRITTEN = Table(
    "match_written",
    1,
    f"id BIGINT NOT NULL, conditions ARRAY<{_CONDITION}> NOT NULL",
    ("id",),
)
"""Events or predicates taken apart, so that Spark alone can join them.

`text` of words, which are a whole text unless `high_open`; `low` and `high` of a box are south and north.
"""

_CONDITION_ARROW = pa.struct(
    [
        ("name", pa.string()),
        ("kind", pa.string()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("low_open", pa.bool_()),
        ("high_open", pa.bool_()),
        ("text", pa.string()),
        ("west", pa.float64()),
        ("east", pa.float64()),
    ]
)
PREDICATES_ARROW = pa.schema([("subscription", pa.int64()), ("predicate", pa.string())])
HOMES_ARROW = pa.schema(
    [
        ("subscription", pa.int64()),
        ("predicate", pa.string()),
        ("name", pa.string()),
        ("kind", pa.string()),
        ("low", pa.float64()),
        ("high", pa.float64()),
    ]
)
PLACED_ARROW = pa.schema([("piece", pa.int32()), ("subscription", pa.int64()), ("predicate", pa.string())])
ROUTED_ARROW = pa.schema([("piece", pa.int32()), ("event", pa.int64()), ("attributes", pa.string())])
MATCHES_ARROW = pa.schema(
    [("event", pa.int64()), ("piece", pa.int32()), ("subscriptions", pa.list_(pa.int64()))]
)
PAIRS_ARROW = pa.schema([("event", pa.int64()), ("subscription", pa.int64())])
WRITTEN_ARROW = pa.schema([("id", pa.int64()), ("conditions", pa.list_(_CONDITION_ARROW))])


def batch_of(rows: Sequence[Sequence[object]], schema: pa.Schema) -> pa.RecordBatch:
    """Rows as a batch."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    arrays = [pa.array(list(column), field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
