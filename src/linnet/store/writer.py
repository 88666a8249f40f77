"""The writer thread of a SQLite store: group commit without linger (docs/adr/0005-group-commit.md).

What is handed over while a group is being written forms the next one. The slower the disk, the
larger the groups; on an idle store a commit starts at once.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

from linnet.core.errors import StoreError
from linnet.store.changes import Changes, write
from linnet.store.faults import fault

_QUIET = 0.2
"""Seconds without a commit after which the write-ahead log is emptied, if it may hold what was deleted."""
_GROUPS = 512
"""Groups after which it is emptied though more are waiting: seconds of commits, a minute on a slow disk."""


class Writer:
    """Makes changes durable, one group after the other, on a connection of its own."""

    def __init__(
        self, db: sqlite3.Connection, path: Path, reached: Callable[[int], None] | None = None
    ) -> None:
        """`path` is named where writing fails.

        `reached` is told, in the writer's thread, up to which position the log is durable.
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
        """Bytes of units that are handed over and not durable."""
        self.failed: StoreError | None = None
        self._stale = 1
        """Groups in the write-ahead log that may hold deleted secrets; what a crash left counts as one."""
        self._thread = threading.Thread(target=self._run, name=f"store {path.name}", daemon=True)
        self._thread.start()

    @property
    def idle(self) -> bool:
        """Whether all that was handed over is durable and told."""
        return self._settled == self._handed

    def hand_over(self, changes: Changes, done: Callable[[], None]) -> int:
        """Have these written and then `done` called in the writer's thread; a ticket for them."""
        with self._turn:
            self._next.absorb(changes)
            self._dones.append(done)
            self.backlog += changes.bytes
            self._handed += 1
            self._turn.notify_all()
            return self._handed

    def on_failure(self, report: Callable[[StoreError], None]) -> None:
        """Call this once when writing fails, at once if it has."""
        with self._turn:
            if self.failed is None:
                self._reports.append(report)
                return
        report(self.failed)

    def drain(self) -> None:
        """Wait until all that was handed over is durable and told, or writing has failed."""
        with self._turn:
            self._turn.wait_for(lambda: self.idle or self.failed is not None)

    def close(self) -> None:
        """Write what was handed over and end the thread; the connection is closed."""
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
        """Move the write-ahead log into the database and cut it to nothing: it holds pages as they were.

        While somebody reads it stays, and is tried again.
        """
        busy, _, _ = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if not busy:
            self._stale = 0
