"""The writer of a SQLite store: transactions on a thread of its own, by group commit without linger.

Writes handed over while a group is being written form the next group. The slower the disk, the larger the
groups; on an idle store a commit starts at once (docs/adr/0005-group-commit.md).
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TypeAlias

from linnet.core.errors import StoreError
from linnet.core.stores import Entry
from linnet.store.faults import fault
from linnet.store.schema import cell_checksum

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
_CELL = "INSERT INTO cell (space, key, value, checksum) VALUES"
_CELL_UPDATE = "ON CONFLICT (space, key) DO UPDATE SET value = excluded.value, checksum = excluded.checksum"


_SECRET = ("group.", "sealed ", "place ")
"""The beginnings of the names of spaces that hold keys, or text that was encrypted on its way."""


class Changes:
    """Writes that become durable together.

    Their order does not matter: an eviction names a position older than every unit that is written after it,
    and only the last value of a summary or a cell counts.
    """

    __slots__ = ("bytes", "cells", "chains", "cuts", "end", "mended", "topics", "units")

    def __init__(self) -> None:
        self.units: list[tuple[int, int, int, Entry]] = []
        """(position, topic id, chain id, unit)."""
        self.bytes = 0
        """The bytes of the units."""
        self.mended: dict[int, Entry] = {}
        """Units that were damaged and are whole again, by position."""
        self.cuts: dict[int, int] = {}
        """The position through which a topic's units are gone, by topic id."""
        self.topics: dict[int, Row | None] = {}
        """Summaries by id; None: deleted."""
        self.chains: dict[int, Row | None] = {}
        self.cells: dict[tuple[str, bytes], Stamped] = {}
        self.end = 0
        """The newest position given; needed where units are evicted."""

    def __bool__(self) -> bool:
        return bool(self.units or self.cuts or self.topics or self.chains or self.cells or self.mended)

    @property
    def is_secret(self) -> bool:
        """Whether a key or a text may be replaced or deleted here, which the write-ahead log still holds."""
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
    """Write changes in one transaction. On an error none of them is stored."""
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
    rows: list[Row] = [
        (space, key, value, cell_checksum(space.encode(), key, value))
        for (space, key), (_, value) in changes.cells.items()
        if value is not None
    ]
    _insert(db, _CELL, rows, _CELL_UPDATE)


def _delete(db: sqlite3.Connection, sql: str, rows: Sequence[Row]) -> None:
    if rows:
        db.executemany(sql, rows)


def _insert(db: sqlite3.Connection, head: str, rows: Sequence[Row], tail: str = "") -> None:
    """Insert many rows with each statement.

    Each statement hands the interpreter lock to the machine's thread and waits for it again, for up to 5 ms
    if that thread is busy; `executemany` would do so for each row.
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


_QUIET = 0.2
"""Seconds without a commit after which the write-ahead log is emptied, if it may hold deleted secrets."""
_GROUPS = 512
"""Groups after which it is emptied even if more are waiting: seconds of commits, a minute on a slow disk."""


class Writer:
    """Makes changes durable, one group after the other, on a connection of its own."""

    def __init__(
        self, db: sqlite3.Connection, path: Path, reached: Callable[[int], None] | None = None
    ) -> None:
        """`path` is the file to name in errors of writing.

        `reached` is called, in the writer's thread, with the position up to which the log is durable.
        """
        self._db = db
        self._path = path
        self._reached = reached
        self._turn = threading.Condition()
        self._next = Changes()
        self._dones: list[Callable[[], None]] = []
        self._reports: list[Callable[[StoreError], None]] = []
        self._closing = False
        self._handed = 0
        self._settled = 0
        self.durable = 0
        """The newest ticket whose changes are durable."""
        self.backlog = 0
        """The bytes of units handed over that are not durable."""
        self.failed: StoreError | None = None
        self._stale = 1
        """The groups in the write-ahead log that may hold deleted secrets; a crash leaves one such group."""
        self._thread = threading.Thread(target=self._run, name=f"store {path.name}", daemon=True)
        self._thread.start()

    @property
    def idle(self) -> bool:
        """Whether all changes handed over are durable and reported."""
        return self._settled == self._handed

    def hand_over(self, changes: Changes, done: Callable[[], None]) -> int:
        """Queue changes to write, and `done` to call then in the writer's thread; return a ticket."""
        with self._turn:
            self._next.absorb(changes)
            self._dones.append(done)
            self.backlog += changes.bytes
            self._handed += 1
            self._turn.notify_all()
            return self._handed

    def on_failure(self, report: Callable[[StoreError], None]) -> None:
        """Call `report` once when writing fails, at once if it has."""
        with self._turn:
            if self.failed is None:
                self._reports.append(report)
                return
        report(self.failed)

    def drain(self) -> None:
        """Wait until all changes handed over are durable and reported, or writing has failed."""
        with self._turn:
            self._turn.wait_for(lambda: self.idle or self.failed is not None)

    def close(self) -> None:
        """Write the changes handed over, end the thread, and close the connection."""
        with self._turn:
            self._closing = True
            self._turn.notify_all()
        self._thread.join()
        self._db.close()

    def _run(self) -> None:
        try:
            while self._write_next():
                pass
        except Exception as error:  # the end of the thread, whatever it is, must be seen
            failure = fault(self._path, "written", error)
            failure.__cause__ = error
            with self._turn:
                self.failed = failure
                reports, self._reports = self._reports, []
                self._turn.notify_all()
            for report in reports:
                report(failure)

    def _write_next(self) -> bool:
        with self._turn:
            quiet = _QUIET if self._stale else None
            awake = self._turn.wait_for(lambda: bool(self._dones or self._closing), quiet)
            if awake and not self._dones:
                return False
        if not awake:
            self._empty_log()
            return True
        with self._turn:
            changes, self._next = self._next, Changes()
            dones, self._dones = self._dones, []
            ticket = self._handed
        if changes:
            write(self._db, changes)
            if self._reached is not None:
                self._reached(changes.end)
        if changes.is_secret:
            self._stale += 1
        with self._turn:
            self.durable = ticket
            self.backlog -= changes.bytes
        for done in dones:
            done()
        with self._turn:
            self._settled = ticket
            self._turn.notify_all()
        if self._stale >= _GROUPS:
            self._empty_log()
        return True

    def _empty_log(self) -> None:
        """Move the write-ahead log into the database and truncate it: it holds pages as they were.

        While another connection reads, the log stays; this is tried again.
        """
        busy, _, _ = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if not busy:
            self._stale = 0
