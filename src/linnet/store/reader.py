"""Reading of a SQLite store, on a connection of the machine's thread."""

from __future__ import annotations

import sqlite3
from typing import Any

from linnet.core.errors import StoreError
from linnet.store.changes import Value


class Reader:
    """Answers queries whole, so that no open read holds back the writer's checkpoints."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def all(self, sql: str, *values: Value) -> list[tuple[Any, ...]]:
        """Every row of an answer."""
        try:
            return self._db.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise StoreError(f"the store cannot be read: {error}") from error

    def first(self, sql: str, *values: Value) -> tuple[Any, ...] | None:
        """The first row of an answer."""
        rows = self.all(sql, *values)
        return rows[0] if rows else None

    def number(self, sql: str, *values: Value) -> int:
        """The one number of an answer; 0 if it is null or absent."""
        row = self.first(sql, *values)
        return 0 if row is None or row[0] is None else int(row[0])

    def close(self) -> None:
        """Close the connection."""
        self._db.close()
