"""A store in one SQLite file, which is still whole after any death of the process.

One process holds it: a lock file beside the store is held while it is open, and freed by any death. Its named
values are those of the database, overlaid by those that are not durable yet.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import sqlite3
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from linnet.core.errors import StoreError
from linnet.core.spaces import STORE_NUMBER, count_by_words, is_expendable, is_needed
from linnet.core.stores import CellDamage, Damage, Entry
from linnet.store.faults import FAULTS, WRITABLE, damaged, fault, told
from linnet.store.mark import ID_BYTES, Mark, check_there, is_marked
from linnet.store.reader import Reader
from linnet.store.schema import cell_checksum, define_functions, is_sound, migrate, migrations
from linnet.store.schema import is_sound as is_sound_cell
from linnet.store.sqlite_log import SqliteLog
from linnet.store.writer import Changes, Stamped, Writer

# Texts and pieces are many and large. They are checked when they are read: readers can do without them.
_DAMAGED = """SELECT CAST(space AS BLOB), key FROM cell
    WHERE substr(space, 1, 11) <> 'group.text/' AND space NOT IN ('piece', 'chunk')
        AND checksum IS NOT CASE WHEN typeof(key) = 'blob' AND typeof(value) = 'blob'
            THEN cell_checksum(CAST(space AS BLOB), key, value) END"""


class SqliteCells:
    """The named values of a `SqliteStore`; see `linnet.core.stores.Cells`."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._stamp = 0
        self._damaged: dict[CellDamage, None] = {}
        self._news: list[CellDamage] = []
        self.forget()
        self._check_needed()

    def forget(self) -> None:
        """Start again from the durable values; the others are lost."""
        self._spaces: dict[str, dict[bytes, Stamped]] = {}
        self._pending: dict[tuple[str, bytes], Stamped] = {}

    @property
    def damaged(self) -> tuple[CellDamage, ...]:
        """The damaged values that were found, and have not been replaced."""
        return tuple(self._damaged)

    def take_damage(self) -> list[CellDamage]:
        """Return the damaged values found since the last call, each once."""
        news, self._news = self._news, []
        return news

    @property
    def is_dirty(self) -> bool:
        """Whether anything was written since the last commit."""
        return bool(self._pending)

    def get(self, space: str, key: bytes) -> bytes | None:
        """Return the value; None if there is none."""
        fresh = self._spaces.get(space)
        if fresh is not None and key in fresh:
            return fresh[key][1]
        row = self._reader.first("SELECT value, checksum FROM cell WHERE space = ? AND key = ?", space, key)
        if row is None:
            return None
        if not is_sound(space, key, *row):
            self._meet_damage(space, (key,))
            return None
        value: bytes = row[0]
        return value

    def put(self, space: str, key: bytes, value: bytes) -> None:
        """Set a value."""
        self._set(space, key, value)

    def delete(self, space: str, key: bytes) -> None:
        """Delete a value, if there is one."""
        self._set(space, key, None)

    def scan(self, space: str) -> Iterator[tuple[bytes, bytes]]:
        """Return all values of a space, in the order of their keys, as they are at the call."""
        rows = self._reader.all("SELECT key, value, checksum FROM cell WHERE space = ? ORDER BY key", space)
        found = [(row[0], row[1]) for row in rows if is_sound(space, *row)]
        fresh = self._spaces.get(space, {})
        wrong: tuple[bytes, ...] = ()
        if len(found) < len(rows):
            keys = [row[0] for row in rows if row[0] not in fresh and not is_sound(space, *row)]
            wrong = tuple(key if isinstance(key, bytes) else b"" for key in keys)
        if fresh:
            merged = {**dict(found), **{key: value for key, (_, value) in fresh.items()}}
            found = sorted((key, value) for key, value in merged.items() if value is not None)
        if wrong:
            self._meet_damage(space, wrong, tuple(found))
        return iter(found)

    def _check_needed(self) -> None:
        """Raise `CellsDamaged` if any value is damaged that no node can do without.

        A value with a damaged key is not found by the key, and would be considered absent.
        """
        rows = self._reader.all(_DAMAGED)
        named = [((space or b"?").decode(errors="replace"), key) for space, key in rows]
        needed = [(space, key) for space, key in named if is_needed(space)]
        if needed:
            space = needed[0][0]
            keys = tuple(key for other, key in needed if other == space and isinstance(key, bytes))
            found = count_by_words(each for each, _ in needed)
            raise self._reader.cells_damaged(found, space, keys)

    def _meet_damage(
        self, space: str, keys: tuple[bytes, ...], sound: tuple[tuple[bytes, bytes], ...] = ()
    ) -> None:
        """Note damaged values; delete them, or raise `CellsDamaged` if they are needed."""
        for damage in (CellDamage(space, key) for key in keys):
            if damage not in self._damaged:
                self._damaged[damage] = None
                self._news.append(damage)
        if not is_expendable(space):
            raise self._reader.cells_damaged(count_by_words([space] * len(keys)), space, keys, sound)
        for key in filter(None, keys):  # A row whose key is no key cannot be named, and stays.
            self.delete(space, key)

    def seal(self, changes: Changes) -> None:
        """Move the pending writes to the changes of a commit."""
        changes.cells.update(self._pending)
        self._pending = {}

    def let_go(self, cells: Mapping[tuple[str, bytes], Stamped]) -> None:
        """Drop durable values from memory, unless they changed again; they are read from the database now."""
        for (space, key), written in cells.items():
            fresh = self._spaces.get(space)
            if fresh is not None and fresh.get(key) == written:
                del fresh[key]
                if not fresh:
                    del self._spaces[space]

    def _set(self, space: str, key: bytes, value: bytes | None) -> None:
        if self._damaged:
            self._damaged.pop(CellDamage(space, key), None)
        self._stamp += 1
        written = (self._stamp, value)
        self._spaces.setdefault(space, {})[key] = written
        self._pending[space, key] = written


class FileLock:
    """Exclusive use of a path. The lock file stays behind: removing it would race with an opener."""

    def __init__(self, path: Path) -> None:
        # Beside the store, not on it: closing any descriptor of a database drops SQLite's own locks.
        lock = path.with_name(path.name + ".lock")
        try:
            self._descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"{lock} cannot be opened: {error.strerror}") from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.read(self._descriptor, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(self._descriptor)
            raise StoreError(
                f"{path} is in use by process {owner}: stop it, or choose another data directory"
            ) from error
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Release the lock; again does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


_WRITER_SETTINGS = """
    PRAGMA synchronous = FULL;
    PRAGMA fullfsync = 1;
    PRAGMA cache_size = -16384;
    PRAGMA wal_autocheckpoint = 2000;
    PRAGMA journal_size_limit = 67108864;
    PRAGMA secure_delete = ON;
"""
# secure_delete writes zeros over data that are deleted or replaced: used keys, text that was taken back. FULL
# syncs the log at each commit, and fullfsync means it on macOS too. 16 MiB of cache; a checkpoint each 16 MiB
# of log, so that a page which changes often is copied once.

_PAGE_BYTES = 8192
"""The bytes of a page: a fifth more appends per second than 4,096, at the same latency of one commit."""

_LET_GO = 64
"""The most commits that one call drops from memory, so that none pays for a large group at once."""


class SqliteStore:
    """A `CommittingStore` in the file at this path, for one process and one thread in it.

    Opening raises `StoreError` if the file cannot be used, with the reason and advice.
    """

    def __init__(self, path: Path, is_sound: Callable[[Entry], bool] | None = None) -> None:
        """With `is_sound`, every unit that is read is checked by it (`linnet.event.signing`).

        Raises `StoreLost` if this is not the store that was here before (`linnet.store.mark`).
        """
        path = path.resolve()
        self._folder = path.parent
        self._lock = FileLock(path)
        with contextlib.ExitStack() as undo:
            undo.callback(self._lock.release)
            check_there(path)
            was_marked = is_marked(path)
            writer, reader = _open(path, migrations())
            undo.callback(writer.close)
            undo.callback(reader.close)
            if not was_marked:
                _forget_number(writer, path)
            self._reader = Reader(reader, path)
            self.log = SqliteLog(self._reader, is_sound)
            """The event log."""
            self.cells = SqliteCells(self._reader)
            """The named values."""
            self._mark = Mark(path, _id_of(writer, path), self.log.end())
            undo.pop_all()
        self._writer = Writer(writer, path, self._mark.reached)
        self._under_way: deque[tuple[int, Changes]] = deque()
        self._closed = False

    @property
    def failed(self) -> StoreError | None:
        """Why nothing can be written any more; None if writing has not failed."""
        return self._writer.failed

    @property
    def damaged(self) -> tuple[Damage, ...]:
        """The damaged units that were found, now or before, and are not mended yet."""
        return self.log.damaged

    @property
    def damaged_cells(self) -> tuple[CellDamage, ...]:
        """The damaged values that were found since the store was opened, and have not been replaced."""
        return self.cells.damaged

    @property
    def backlog(self) -> int:
        """The bytes of units handed over that are not durable yet."""
        return self._writer.backlog

    @property
    def free_bytes(self) -> int | None:
        """The bytes that are free on the disk; None: it does not say."""
        try:
            disk = os.statvfs(self._folder)
        except OSError:
            return None
        return disk.f_bavail * disk.f_frsize

    def last_times(self) -> tuple[float | None, float | None]:
        """Return when the newest unit was stored, and the latest such time: a clock may have been ahead."""
        last = self._reader.first("SELECT stored_at FROM unit ORDER BY position DESC LIMIT 1")
        latest = self._reader.first("SELECT max(stored_at) FROM unit")
        return None if last is None else last[0], None if latest is None else latest[0]

    def on_failure(self, report: Callable[[StoreError], None]) -> None:
        """Call `report` once when writing fails, in the writer's thread; at once if it has failed."""
        self._writer.on_failure(report)

    def commit(self, done: Callable[[], None]) -> None:
        """Make all writes so far durable, then call `done` in the writer's thread.

        If no commit is under way, `done` is called at once.
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
        changes = self.log.seal()
        self.cells.seal(changes)
        self._under_way.append((self._writer.hand_over(changes, done), changes))

    def rollback(self) -> None:
        """Forget the writes since the last `commit`, after waiting for those before it."""
        if not self._is_dirty:
            return
        self._writer.drain()
        self._raise_failure()
        self._under_way.clear()
        self.log.forget()
        self.cells.forget()

    def close(self) -> None:
        """Commit the writes handed over, forget the rest, and close; again does nothing."""
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
        return bool(self.log.pending) or self.cells.is_dirty

    def _let_go(self, most: int) -> None:
        """Keep in memory only the writes that the database may not have yet."""
        durable = self._writer.durable
        while most and self._under_way and self._under_way[0][0] <= durable:
            most -= 1
            _, changes = self._under_way.popleft()
            self.log.let_go(changes.units)
            self.cells.let_go(changes.cells)

    def _raise_failure(self) -> None:
        if self._writer.failed is not None:
            # An error of its own for each caller: see `Driver.raise_store_failure`.
            raise StoreError(*self._writer.failed.args) from self._writer.failed


def _open(path: Path, steps: Sequence[str]) -> tuple[sqlite3.Connection, sqlite3.Connection]:
    """Return a connection for the writer's thread and one for the machine's, with the newest schema."""
    try:
        with contextlib.ExitStack() as undo:
            # Made before SQLite would make it, since nobody else may read it; its log files get the same
            # mode.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            writer = undo.enter_context(contextlib.closing(_connect(path)))
            writer.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
            writer.execute("PRAGMA secure_delete = ON")  # Steps move keys and texts to other pages.
            migrate(writer, path, steps)
            path.chmod(0o600)
            writer.execute("PRAGMA journal_mode = WAL")
            writer.executescript(_WRITER_SETTINGS)
            reader = undo.enter_context(contextlib.closing(_connect(path)))
            reader.execute("PRAGMA query_only = 1")
            # No column that is read holds text: a value that looks like text is damaged, and is judged as
            # bytes.
            reader.text_factory = bytes
            define_functions(reader)
            undo.pop_all()
    except OSError as error:
        raise StoreError(f"{path} cannot be opened: {error.strerror or error}; {WRITABLE}") from error
    except FAULTS as error:
        raise fault(path, "opened", error) from error
    return writer, reader


def _id_of(writer: sqlite3.Connection, path: Path) -> bytes:
    """Return the id of the store, a unique number made when it is first opened."""
    fresh = secrets.token_bytes(ID_BYTES)
    with told(path, "written"):
        writer.execute(
            "INSERT OR IGNORE INTO cell (space, key, value, checksum) VALUES ('store', x'6964', ?, ?)",
            (fresh, cell_checksum(b"store", b"id", fresh)),
        )
        row = writer.execute(
            "SELECT value, checksum FROM cell WHERE space = 'store' AND key = x'6964'"
        ).fetchone()
    if row is None or not is_sound_cell("store", b"id", *row):
        raise damaged(path, "its own number is not there")
    found: bytes = row[0]
    return found


def _forget_number(writer: sqlite3.Connection, path: Path) -> None:
    """Forget the number under which the store signs what it keeps: without its mark it may be an older copy.

    A storage node must not be held to what it signed after that copy was made.
    """
    with told(path, "written"):
        writer.execute("DELETE FROM cell WHERE space = ? AND key = ?", STORE_NUMBER)


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False)
