"""The trace of a simulation: many nodes, millions of rows, little memory.

A row takes 60 bytes. Repeated values (ids, labels, notes) are kept once and numbered in the order of first
appearance, so the same run gives the same table under any hash seed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from linnet.core.ids import PeerId
from linnet.trace.canonical import ABSENT, ROW, Numbers, seconds
from linnet.trace.records import Record, Row

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

    from linnet.trace.arrow import Packed

Canonical: TypeAlias = tuple[Any, ...]
"""The columns of a `Row`, with the time in microseconds."""


class ColumnTrace:
    """A `TraceSink` that keeps all rows in memory, for hashing and for Parquet. Write first, then read."""

    def __init__(self) -> None:
        self._rows = bytearray()
        self._ids: Numbers[bytes] = Numbers()
        self._labels: Numbers[str] = Numbers()
        self._notes: Numbers[str] = Numbers()
        self._newest = 0
        self._is_ordered = True

    def __len__(self) -> int:
        return len(self._rows) // ROW.size

    def write(self, node: PeerId, record: Record, now: float) -> None:
        """Keep a record of a node with its time."""
        ids, labels = self._ids, self._labels
        time, seq, size, hops = round(now * 1_000_000), record.seq, record.bytes, record.hops
        if time < self._newest:
            self._is_ordered = False
        self._newest = time
        self._rows += ROW.pack(
            time,
            ABSENT if seq is None else seq,
            ABSENT if size is None else size,
            ids[node],
            ids[record.topic],
            ids[record.event],
            ids[record.device],
            ids[record.peer],
            self._notes[record.note],
            record.events,
            ABSENT if hops is None else hops,
            labels[record.kind],
            labels[record.reason],
        )

    def close(self) -> None:
        """Do nothing: the rows stay readable."""

    def rows(self) -> Iterator[Row]:
        """Iterate over all rows in (time, node, counter) order."""
        return (Row(seconds(row[0]), *row[1:]) for row in self._ordered())

    def sha256(self) -> str:
        """Return the hash of all rows; see `linnet.trace.canonical.trace_sha256`."""
        digest = hashlib.sha256()
        encode = msgspec.msgpack.Encoder().encode
        for row in self._ordered():
            digest.update(encode(row))
        return digest.hexdigest()

    def to_arrow(self) -> pa.Table:
        """Return all rows as an Arrow table of `linnet.trace.records.SCHEMA`; needs ``linnet[sim]``."""
        return self._packed().table()

    def write_parquet(self, path: Path) -> None:
        """Write all rows into a Parquet file; needs ``linnet[sim]``."""
        self._packed().write(path)

    def _packed(self) -> Packed:
        # Imported late: a node has no Arrow, and a simulation that writes no table needs none.
        from linnet.trace.arrow import Packed

        return Packed(self._rows, list(self._ids), list(map(_text, self._labels)), list(self._notes))

    def _ordered(self) -> Iterator[Canonical]:
        if not self._is_ordered:
            yield from sorted(self._numbered(), key=itemgetter(0, 1, 2))
            return
        # A simulation's clock only grows, so only rows of one moment have to be sorted.
        moment: list[Canonical] = []
        for row in self._numbered():
            if moment and row[0] != moment[0][0]:
                moment.sort(key=itemgetter(1, 2))
                yield from moment
                moment.clear()
            moment.append(row)
        moment.sort(key=itemgetter(1, 2))
        yield from moment

    def _numbered(self) -> Iterator[Canonical]:
        """Iterate over rows as they were written, each with its index among the rows of its node."""
        ids, notes = list(self._ids), list(self._notes)
        labels = list(map(_text, self._labels))
        counters: dict[int, int] = {}
        for row in ROW.iter_unpack(self._rows):
            time, seq, size, node, topic, event, device, peer, note, events, hops, kind, reason = row
            counter = counters.get(node, 0)
            counters[node] = counter + 1
            yield (
                time,
                ids[node],
                counter,
                labels[kind],
                ids[topic],
                ids[event],
                ids[device],
                None if seq == ABSENT else seq,
                events,
                ids[peer],
                None if hops == ABSENT else hops,
                None if size == ABSENT else size,
                labels[reason],
                notes[note],
            )


def _text(label: str | None) -> str | None:
    """Return a kind or reason as plain text."""
    return None if label is None else str(label)
