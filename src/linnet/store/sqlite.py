"""A store in one SQLite file, which any death of the process leaves whole."""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from linnet.core.errors import StoreError
from linnet.core.stores import Damage, Entry
from linnet.store.changes import Changes
from linnet.store.faults import FAULTS, WRITABLE, damaged, fault, told
from linnet.store.lock import FileLock
from linnet.store.mark import ID_BYTES, Mark, check_there
from linnet.store.reader import Reader
from linnet.store.schema import migrate, migrations
from linnet.store.sqlite_cells import SqliteCells
from linnet.store.sqlite_log import SqliteLog
from linnet.store.writer import Writer

_WRITER_SETTINGS = """
    PRAGMA synchronous = FULL;
    PRAGMA fullfsync = 1;
    PRAGMA cache_size = -16384;
    PRAGMA wal_autocheckpoint = 2000;
    PRAGMA journal_size_limit = 67108864;
    PRAGMA secure_delete = ON;
"""
# secure_delete writes zeros over what is deleted or replaced: keys that were used, text that was taken back.
# FULL syncs the log at each commit, and fullfsync means it on macOS too. 16 MiB of cache; a
# checkpoint each 16 MiB of log, so that a page which changes often is copied once.

_PAGE_BYTES = 8192
"""Bytes of a page: a fifth more appends a second than 4,096, at the same latency of one commit."""

_LET_GO = 64
"""Commits that one call lets go of at most, so that none pays for a large group at once."""


class SqliteStore:
    """A `CommittingStore` in a file of this path, for the use of one process and one thread in it.

    Opening raises `StoreError` if the file cannot be used, and says why and what to do.
    """

    def __init__(self, path: Path, is_sound: Callable[[Entry], bool] | None = None) -> None:
        """With `is_sound`, every unit that is read is checked by it (`linnet.event.soundness`).

        Raises `StoreLost` if this is not the store that was here before (`linnet.store.mark`).
        """
        path = path.resolve()
        self._lock = FileLock(path)
        with contextlib.ExitStack() as undo:
            undo.callback(self._lock.release)
            check_there(path)
            writer, reader = _open(path, migrations())
            undo.callback(writer.close)
            undo.callback(reader.close)
            self._reader = Reader(reader, path)
            self._log = SqliteLog(self._reader, is_sound)
            self._cells = SqliteCells(self._reader)
            self._mark = Mark(path, _id_of(writer, path), self._log.end())
            undo.pop_all()
        self._writer = Writer(writer, path, self._mark.reached)
        self._under_way: deque[tuple[int, Changes]] = deque()
        self._closed = False

    @property
    def log(self) -> SqliteLog:
        """The event log."""
        return self._log

    @property
    def cells(self) -> SqliteCells:
        """The named values."""
        return self._cells

    @property
    def failed(self) -> StoreError | None:
        """Why nothing can be written any more; None while all is well."""
        return self._writer.failed

    @property
    def damaged(self) -> tuple[Damage, ...]:
        """What was found damaged, now or before, and is not mended yet."""
        return self._log.damaged

    @property
    def backlog(self) -> int:
        """Bytes of units that were handed over and are not durable yet."""
        return self._writer.backlog

    def last_times(self) -> tuple[float | None, float | None]:
        """When the newest unit was stored, and the latest such time of all: a clock may have been ahead."""
        last = self._reader.first("SELECT stored_at FROM unit ORDER BY position DESC LIMIT 1")
        latest = self._reader.first("SELECT max(stored_at) FROM unit")
        return None if last is None else last[0], None if latest is None else latest[0]

    def on_failure(self, report: Callable[[StoreError], None]) -> None:
        """Call this once when writing fails, in the writer's thread; at once if it has failed."""
        self._writer.on_failure(report)

    def commit(self, done: Callable[[], None]) -> None:
        """Make all writes so far durable, then call `done` in the writer's thread.

        If nothing is under way, `done` is called at once.
        """
        self._raise_failure()
        if self._closed:
            raise StoreError("the store is closed")
        self._let_go(_LET_GO)
        if not self._is_dirty:
            if self._writer.idle:
                done()
            else:
                self._writer.hand_over(Changes(), done)
            return
        changes = self._log.seal()
        self._cells.seal(changes)
        self._under_way.append((self._writer.hand_over(changes, done), changes))

    def rollback(self) -> None:
        """Forget the writes since the last `commit`; waits for those before it."""
        if not self._is_dirty:
            return
        self._writer.drain()
        self._raise_failure()
        self._under_way.clear()
        self._log.forget()
        self._cells.forget()

    def close(self) -> None:
        """Commit what was handed over, forget the rest, and close; again does nothing."""
        if self._closed:
            return
        self._closed = True
        self._writer.close()
        self._mark.close()
        self._reader.close()
        self._lock.release()
        self._raise_failure()

    @property
    def _is_dirty(self) -> bool:
        return bool(self._log.pending) or self._cells.is_dirty

    def _let_go(self, most: int) -> None:
        """Keep in memory only what the database may not have yet."""
        durable = self._writer.durable
        while most and self._under_way and self._under_way[0][0] <= durable:
            most -= 1
            _, changes = self._under_way.popleft()
            self._log.let_go(changes.units)
            self._cells.let_go(changes.cells)

    def _raise_failure(self) -> None:
        if self._writer.failed is not None:
            # One of its own for each caller: see `Driver.raise_store_failure`.
            raise StoreError(*self._writer.failed.args) from self._writer.failed


def _open(path: Path, steps: Sequence[str]) -> tuple[sqlite3.Connection, sqlite3.Connection]:
    """A connection for the writer's thread and one for the machine's, on a file of the newest schema."""
    try:
        with contextlib.ExitStack() as undo:
            # Made before SQLite would make it, since nobody else may read it; its log files follow suit.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            writer = undo.enter_context(contextlib.closing(_connect(path)))
            writer.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
            migrate(writer, path, steps)
            path.chmod(0o600)
            writer.execute("PRAGMA journal_mode = WAL")
            writer.executescript(_WRITER_SETTINGS)
            reader = undo.enter_context(contextlib.closing(_connect(path)))
            reader.execute("PRAGMA query_only = 1")
            # No column that is read holds text: what looks like it is damaged, and is judged as bytes.
            reader.text_factory = bytes
            undo.pop_all()
    except OSError as error:
        raise StoreError(f"{path} cannot be opened: {error.strerror or error}; {WRITABLE}") from error
    except FAULTS as error:
        raise fault(path, "opened", error) from error
    return writer, reader


def _id_of(writer: sqlite3.Connection, path: Path) -> bytes:
    """A number that no other store has, made when it is first opened."""
    with told(path, "written"):
        writer.execute(
            "INSERT OR IGNORE INTO cell (space, key, value) VALUES ('store', x'6964', ?)",
            (secrets.token_bytes(ID_BYTES),),
        )
        row = writer.execute("SELECT value FROM cell WHERE space = 'store' AND key = x'6964'").fetchone()
    if row is None or not isinstance(row[0], bytes):
        raise damaged(path, "its own number is not there")
    return row[0]


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False)
