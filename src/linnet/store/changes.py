"""What a SQLite store writes in one transaction, and the writing of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import TypeAlias

from linnet.core.stores import Entry

Value: TypeAlias = int | float | str | bytes | None
Row: TypeAlias = tuple[Value, ...]
Stamped: TypeAlias = tuple[int, bytes | None]
"""The value of a cell, None if it is deleted, and a number that no other write has."""

_ROWS_PER_STATEMENT = (256, 16, 1)

_UNIT = "INSERT INTO unit (position, topic, chain, first, count, stored_at, head, raw) VALUES"
_TOPIC = "INSERT INTO topic (id, topic, units, events, bytes, stepped) VALUES"
_TOPIC_UPDATE = """ON CONFLICT (id) DO UPDATE SET units = excluded.units, events = excluded.events,
    bytes = excluded.bytes, stepped = excluded.stepped"""
_CHAIN = "INSERT INTO chain (id, topic, author, device, units, longest, first, last, head) VALUES"
_CHAIN_UPDATE = """ON CONFLICT (id) DO UPDATE SET units = excluded.units, longest = excluded.longest,
    first = excluded.first, last = excluded.last, head = excluded.head"""
_CELL = "INSERT INTO cell (space, key, value) VALUES"
_CELL_UPDATE = "ON CONFLICT (space, key) DO UPDATE SET value = excluded.value"


_SECRET = ("group.", "sealed ", "place ")
"""How the names of spaces begin that hold keys, or text that was encrypted on its way."""


class Changes:
    """Writes that become durable together.

    The order in which they were made does not matter: an eviction names a position older than every
    unit that is written after it, and of a summary or a cell only the last value counts.
    """

    __slots__ = ("bytes", "cells", "chains", "cuts", "end", "mended", "topics", "units")

    def __init__(self) -> None:
        self.units: list[tuple[int, int, int, Entry]] = []
        """(position, topic id, chain id, unit)."""
        self.bytes = 0
        """Of the units."""
        self.mended: dict[int, Entry] = {}
        """By position, units that were damaged and are whole again."""
        self.cuts: dict[int, int] = {}
        """By topic id, the position through which its units are gone."""
        self.topics: dict[int, Row | None] = {}
        """Summaries by id; None: gone."""
        self.chains: dict[int, Row | None] = {}
        self.cells: dict[tuple[str, bytes], Stamped] = {}
        self.end = 0
        """The newest position given; needed where units are evicted."""

    def __bool__(self) -> bool:
        return bool(self.units or self.cuts or self.topics or self.chains or self.cells or self.mended)

    @property
    def is_secret(self) -> bool:
        """Whether a key or a text may be replaced or deleted here: the write-ahead log has it still."""
        return any(space.startswith(_SECRET) for space, _ in self.cells)

    def absorb(self, later: Changes) -> None:
        """Add writes that were made after these."""
        self.units += later.units
        self.bytes += later.bytes
        self.mended.update(later.mended)
        self.cuts.update(later.cuts)
        self.topics.update(later.topics)
        self.chains.update(later.chains)
        self.cells.update(later.cells)
        self.end = max(self.end, later.end)


def write(db: sqlite3.Connection, changes: Changes) -> None:
    """Write changes in one transaction. On an error nothing of them is there."""
    db.execute("BEGIN IMMEDIATE")
    try:
        _write_units(db, changes)
        _write_summaries(db, changes)
        _write_cells(db, changes)
        db.execute("COMMIT")
    except sqlite3.Error:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _write_units(db: sqlite3.Connection, changes: Changes) -> None:
    rows: list[Row] = [
        (position, topic, owner, unit.first, unit.count, unit.stored_at, unit.head, unit.raw)
        for position, topic, owner, unit in changes.units
    ]
    _insert(db, _UNIT, rows)
    for position, unit in changes.mended.items():
        values = (unit.first, unit.count, unit.head, unit.raw, position)
        db.execute("UPDATE unit SET first = ?, count = ?, head = ?, raw = ? WHERE position = ?", values)
        noted = position.to_bytes(8, "big")
        db.execute("DELETE FROM cell WHERE space = 'damaged' AND key = ?", (noted,))
    if changes.cuts:
        _delete(db, "DELETE FROM unit WHERE topic = ? AND position <= ?", list(changes.cuts.items()))
        db.execute("UPDATE log_end SET position = max(position, ?)", (changes.end,))


def _write_summaries(db: sqlite3.Connection, changes: Changes) -> None:
    # A chain that vanished may be back under a new id: deletions first.
    _delete(db, "DELETE FROM chain WHERE id = ?", [(n,) for n, row in changes.chains.items() if row is None])
    _insert(db, _CHAIN, [row for row in changes.chains.values() if row is not None], _CHAIN_UPDATE)
    _delete(db, "DELETE FROM topic WHERE id = ?", [(n,) for n, row in changes.topics.items() if row is None])
    _insert(db, _TOPIC, [row for row in changes.topics.values() if row is not None], _TOPIC_UPDATE)


def _write_cells(db: sqlite3.Connection, changes: Changes) -> None:
    gone: list[Row] = [place for place, (_, value) in changes.cells.items() if value is None]
    _delete(db, "DELETE FROM cell WHERE space = ? AND key = ?", gone)
    rows: list[Row] = [(*place, value) for place, (_, value) in changes.cells.items() if value is not None]
    _insert(db, _CELL, rows, _CELL_UPDATE)


def _delete(db: sqlite3.Connection, sql: str, rows: Sequence[Row]) -> None:
    if rows:
        db.executemany(sql, rows)


def _insert(db: sqlite3.Connection, head: str, rows: Sequence[Row], tail: str = "") -> None:
    """Insert many rows a statement.

    Each statement hands the interpreter lock to the machine's thread and waits for it again, for up to
    5 ms if that thread is busy; `executemany` would do so for each row.
    """
    begin = 0
    for size in _ROWS_PER_STATEMENT:
        while len(rows) - begin >= size:
            part = rows[begin : begin + size]
            begin += size
            db.execute(_statement(head, len(part[0]), size, tail), tuple(chain.from_iterable(part)))


@lru_cache(maxsize=32)
def _statement(head: str, columns: int, rows: int, tail: str) -> str:
    row = "(" + ", ".join("?" * columns) + ")"
    return f"{head} {', '.join([row] * rows)} {tail}"
