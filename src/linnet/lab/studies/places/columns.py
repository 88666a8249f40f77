"""The tables of the study, from raw fragments to answers.

Numbers of places are bounded by 2^63 - 1 (`linnet.core.limits`), so each fits a column. Rows of one place
stay together: everything is ordered within a place, and nothing across.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa  # type: ignore[import-untyped]

from linnet.lab.tables import Table

UNITS = Table(
    "place_units",
    1,
    "place INT NOT NULL, arrival BIGINT NOT NULL, unit BINARY NOT NULL",
    ("place", "arrival"),
)
"""Fragments as they came, in the order of `arrival`: signed units, copies and forgeries among them."""

FRAGMENTS = Table(
    "place_fragments",
    1,
    "place INT NOT NULL, arrival BIGINT NOT NULL, fragment BIGINT, message BIGINT, offset BIGINT, "
    "generation BIGINT, flags INT, nym BINARY, joins BOOLEAN, since BIGINT, event BINARY, body BINARY, "
    "fault STRING",
    ("place", "arrival"),
)
"""The same, checked: either the fields of the head, the event's name and the piece, or why it is refused.

`nym`, `joins` and `since` are those of the change of membership that the fragment announces, if it does.
"""

TAKEN = Table(
    "place_taken",
    1,
    "place INT NOT NULL, fragment BIGINT, message BIGINT, offset BIGINT, generation BIGINT, flags INT, "
    "nym BINARY, joins BOOLEAN, since BIGINT, body BINARY, copies BIGINT NOT NULL, equivocated BOOLEAN",
    ("place", "fragment"),
)
"""Each fragment once, as it came first; `equivocated` if another came under the same number."""

PARSED = Table(
    "place_parsed",
    1,
    "place INT NOT NULL, message BIGINT, method STRING, delta BIGINT, hash BINARY, "
    "modifiers ARRAY<STRUCT<operator: STRING, name: STRING, value: BINARY>>, fault STRING",
    ("place", "message"),
)
"""Messages whose modifiers are complete, or that cannot be read and why; the others are not in it."""

INTERVALS = Table(
    "place_intervals",
    1,
    "place INT NOT NULL, name STRING, since BIGINT, until BIGINT, value BINARY",
    ("place", "name", "since"),
)
"""The value of each variable from a message on, up to another (without it), or still: a history of state."""

ANSWERS = Table(
    "place_answers",
    1,
    "place INT NOT NULL, job STRING NOT NULL, key STRING NOT NULL, answer STRING NOT NULL",
    ("place", "job", "key"),
)
"""What a job says, in words that two ways to reckon can be compared by."""

AGREEMENT = Table(
    "place_agreement",
    1,
    "job STRING NOT NULL, answers BIGINT NOT NULL, differences BIGINT NOT NULL, first STRING",
    ("job",),
)
"""Both ways side by side; `first` is one of the differences."""


def arrow_of(table: Table) -> pa.Schema:
    """The columns of a table without lists in them, as Arrow has them."""
    kinds = {
        "INT": pa.int32(),
        "BIGINT": pa.int64(),
        "STRING": pa.string(),
        "BINARY": pa.binary(),
        "BOOLEAN": pa.bool_(),
    }
    fields = [column.split() for column in table.columns.split(", ")]
    return pa.schema([(name, kinds[kind]) for name, kind, *_ in fields])


def batch_of(rows: Sequence[Sequence[object]], schema: pa.Schema) -> pa.RecordBatch:
    """Rows as a batch."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
