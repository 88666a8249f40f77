"""Rows of a `ColumnTrace` as Arrow and Parquet. Only this module needs ``linnet[sim]``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from linnet.core.errors import TraceError
from linnet.trace.canonical import ABSENT, FIELDS, MILLION, ROW
from linnet.trace.records import SCHEMA, SCHEMA_VERSION

try:
    import numpy as np
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]
except ImportError as error:
    raise TraceError(f"tables need {error.name}: pip install 'linnet[sim]'") from error

_TYPES = {"double": pa.float64(), "binary": pa.binary(), "bigint": pa.int64(), "string": pa.string()}
ARROW_SCHEMA = pa.schema(
    [pa.field(name, _TYPES[kind], nullable) for name, kind, nullable in SCHEMA],
    metadata={"linnet_trace": str(SCHEMA_VERSION)},
)

_BATCH_ROWS = 1 << 18
"""Rows that are expanded at a time: some tens of megabytes."""

_IDS = ("node", "topic", "event", "device", "peer")
_LABELS = ("kind", "reason")


class Packed:
    """The packed rows of a trace, with the ids, labels and notes that their numbers stand for."""

    def __init__(
        self,
        rows: bytearray,
        ids: Sequence[bytes | None],
        labels: Sequence[str | None],
        notes: Sequence[str | None],
    ) -> None:
        codes = {"q": "<i8", "I": "<u4", "i": "<i4", "H": "<u2"}
        layout = [(name, codes[code]) for name, code in zip(FIELDS, ROW.format[1:], strict=True)]
        self._rows = np.frombuffer(rows, dtype=layout)
        self._ids = ids
        ids_array = pa.array(ids, pa.binary())
        labels_array = pa.array(labels, pa.string())
        self._values = {
            **dict.fromkeys(_IDS, ids_array),
            **dict.fromkeys(_LABELS, labels_array),
            "note": pa.array(notes, pa.string()),
        }

    def table(self) -> pa.Table:
        """Return all rows in (time, node, counter) order."""
        return pa.Table.from_batches(list(self._batches()), ARROW_SCHEMA)

    def write(self, path: Path) -> None:
        """Write the rows into a Parquet file, without holding them all in memory."""
        with pq.ParquetWriter(path, ARROW_SCHEMA) as file:
            for batch in self._batches():
                file.write_batch(batch)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        counters = self._counters()
        # Sorts ids by their bytes, since their numbers are in the order of first appearance.
        by_name = sorted(range(len(self._ids)), key=lambda number: self._ids[number] or b"")
        rank = np.empty(len(by_name), dtype=np.int64)
        rank[by_name] = np.arange(len(by_name))
        order = np.lexsort((counters, rank[self._rows["node"]], self._rows["time"]))
        for begin in range(0, len(order), _BATCH_ROWS):
            chosen = order[begin : begin + _BATCH_ROWS]
            rows = self._rows[chosen]
            columns = [
                pa.array(counters[chosen]) if name == "counter" else self._column(name, rows[name])
                for name, _, _ in SCHEMA
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=ARROW_SCHEMA)

    def _column(self, name: str, numbers: np.ndarray[Any, Any]) -> pa.Array:
        if name in self._values:
            return self._values[name].take(pa.array(numbers))
        if name == "time":
            return pa.array(numbers / MILLION)
        return pa.array(numbers.astype(np.int64), mask=numbers == ABSENT)

    def _counters(self) -> np.ndarray[Any, Any]:
        """Return for each row its index among the rows of its node."""
        nodes = self._rows["node"]
        by_node = np.argsort(nodes, kind="stable")
        grouped = nodes[by_node]
        begins = np.flatnonzero(np.r_[True, grouped[1:] != grouped[:-1]]) if len(nodes) else np.empty(0, int)
        lengths = np.diff(np.r_[begins, len(nodes)])
        counters = np.empty(len(nodes), dtype=np.int64)
        counters[by_node] = np.arange(len(nodes)) - np.repeat(begins, lengths)
        return counters
