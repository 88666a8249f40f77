"""Reads a SQLite store, on a connection of the machine's thread."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from linnet.core.errors import CellsDamaged, StoreError
from linnet.core.ids import AuthorId, DeviceId, EventId, TopicId
from linnet.core.limits import BATCH_EVENTS
from linnet.core.stores import Entry
from linnet.store.faults import FAULTS, damaged, fault
from linnet.store.writer import Value


class Reader:
    """Reads each answer whole, so that no open read holds back the writer's checkpoints."""

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        """`path` is the file to name in errors."""
        self._db = db
        self._path = path

    def all(self, sql: str, *values: Value) -> list[tuple[Any, ...]]:
        """Return every row of an answer."""
        try:
            return self._db.execute(sql, values).fetchall()
        except FAULTS as error:
            raise fault(self._path, "read", error) from error

    def first(self, sql: str, *values: Value) -> tuple[Any, ...] | None:
        """Return the first row of an answer; None if it is empty."""
        rows = self.all(sql, *values)
        return rows[0] if rows else None

    def number(self, sql: str, *values: Value) -> int:
        """Return the one number of an answer; 0 if it is null or absent."""
        row = self.first(sql, *values)
        if row is None or row[0] is None:
            return 0
        if not isinstance(row[0], int):
            raise self.damaged(f"{row[0]!r} stands where a number should")
        return row[0]

    def damaged(self, what: str) -> StoreError:
        """Return the error of content that was never written like this."""
        return damaged(self._path, what)

    def cells_damaged(
        self, what: str, space: str, keys: tuple[bytes, ...], sound: tuple[tuple[bytes, bytes], ...] = ()
    ) -> CellsDamaged:
        """Return the error of values that are not what was written; `what` describes them."""
        return CellsDamaged(
            str(self.damaged(f"values of it are not what was written ({what})")), space, keys, sound
        )

    def close(self) -> None:
        """Close the connection."""
        self._db.close()


def entry_of(topic: TopicId, author: AuthorId, device: DeviceId, *fields: object) -> Entry:
    """Return the unit of a row: first, count, head, stored_at, raw.

    SQLite returns whatever a damaged row seems to hold. Values of another type than was written become empty
    here, so that the unit is found to be damaged like one whose bytes were changed.
    """
    first, count, head, stored_at, raw = fields
    return Entry(
        topic,
        author,
        device,
        first if isinstance(first, int) else None,
        count if isinstance(count, int) and 0 < count <= BATCH_EVENTS else 1,
        EventId(head if isinstance(head, bytes) else b""),
        float(stored_at) if isinstance(stored_at, int | float) else 0.0,
        raw if isinstance(raw, bytes) else b"",
    )
