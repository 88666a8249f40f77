"""The writer's thread: groups, tickets, and how it ends."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.store.entries import unit

from linnet.core.errors import StoreError
from linnet.store.schema import migrate, migrations
from linnet.store.writer import Changes, Writer

WAIT = 20.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    db = sqlite3.connect(path, isolation_level=None)
    migrate(db, path, migrations())
    db.close()
    return path


def opened(path: Path, seen: Callable[[str], None] | None = None) -> Writer:
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    db.set_trace_callback(seen)
    return Writer(db, path)


def one(position: int) -> Changes:
    changes = Changes()
    changes.units.append((position, 1, 1, unit(position)))
    changes.bytes = 10
    return changes


def count(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        (units,) = db.execute("SELECT count(*) FROM unit").fetchone()
    return int(units)


class Gate:
    """A `done` that holds the writer's thread until it is opened."""

    def __init__(self) -> None:
        self.reached, self._opened = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.reached.set()
        assert self._opened.wait(WAIT)

    def open(self) -> None:
        self._opened.set()


def test_what_comes_while_a_group_is_written_is_the_next_group(path: Path) -> None:
    statements: list[str] = []
    writer, gate, done = opened(path, statements.append), Gate(), list[int]()
    assert writer.hand_over(one(1), gate) == 1
    assert gate.reached.wait(WAIT)
    for position in range(2, 12):
        writer.hand_over(one(position), lambda position=position: done.append(position))  # type: ignore[misc]
    assert (writer.durable, writer.backlog, writer.idle, done) == (1, 100, False, [])
    gate.open()
    writer.drain()
    assert (writer.durable, writer.backlog, writer.idle) == (11, 0, True)
    assert done == list(range(2, 12)), "in their order"
    assert statements.count("COMMIT") == 2, "one for the first, one for all that waited"
    writer.close()
    assert count(path) == 11


def test_done_is_called_when_it_is_durable(path: Path) -> None:
    writer = opened(path)
    seen: list[int] = []
    writer.hand_over(one(1), lambda: seen.append(count(path)))
    writer.drain()
    assert seen == [1]
    writer.close()


def test_nothing_to_write_is_told_in_turn_without_a_transaction(path: Path) -> None:
    statements: list[str] = []
    writer, order = opened(path, statements.append), list[str]()
    writer.hand_over(Changes(), lambda: order.append("nothing"))
    writer.drain()
    assert (order, statements) == (["nothing"], [])
    writer.close()


def test_closing_writes_what_was_handed_over(path: Path) -> None:
    writer, gate = opened(path), Gate()
    writer.hand_over(one(1), gate)
    assert gate.reached.wait(WAIT)
    writer.hand_over(one(2), lambda: None)
    gate.open()
    writer.close()
    assert count(path) == 2


def test_a_failure_is_told_once_to_each_and_no_done_follows(path: Path) -> None:
    writer, told, done = opened(path), list[StoreError](), list[int]()
    reported = threading.Event()
    writer.on_failure(told.append)
    writer.on_failure(lambda error: reported.set())
    writer.hand_over(one(1), lambda: done.append(1))
    writer.drain()
    writer.hand_over(one(1), lambda: done.append(2))
    writer.drain()
    assert reported.wait(WAIT)
    assert writer.failed is not None
    assert str(writer.failed).startswith(f"{path} cannot be written: UNIQUE constraint failed")
    assert isinstance(writer.failed.__cause__, sqlite3.IntegrityError)
    writer.on_failure(told.append)
    assert told == [writer.failed, writer.failed], "the second came late, and is told at once"
    assert (done, writer.idle, writer.durable) == ([1], False, 1)
    writer.close()


def test_a_done_that_raises_is_a_failure_that_is_seen(path: Path) -> None:
    def broken() -> None:
        raise ZeroDivisionError("a bug")

    writer = opened(path)
    writer.hand_over(one(1), broken)
    writer.drain()
    assert isinstance(writer.failed, StoreError)
    assert isinstance(writer.failed.__cause__, ZeroDivisionError)
    writer.close()


def test_the_log_is_emptied_once_it_is_quiet_and_in_between_when_it_never_is(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages as they were before a key was deleted lie in the write-ahead log until then."""
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA journal_mode = WAL")
    db.close()
    seen: list[str] = []
    emptied = threading.Event()

    def look(sql: str) -> None:
        seen.append(sql)
        if "wal_checkpoint" in sql:
            emptied.set()

    monkeypatch.setattr("linnet.store.writer._GROUPS", 3)
    writer = opened(path, look)
    assert emptied.wait(WAIT)  # What a crash may have left.
    emptied.clear()

    def cell(space: str, value: bytes) -> Changes:
        changes = Changes()
        changes.cells[space, b"key"] = (1, value)
        return changes

    log = path.with_name(path.name + "-wal")
    writer.hand_over(cell("cursor", b"nothing secret"), lambda: None)
    writer.drain()
    assert not emptied.wait(0.5)
    assert log.stat().st_size > 0
    writer.hand_over(cell("group.state/aa", b"a key that was used"), lambda: None)
    writer.drain()
    assert emptied.wait(WAIT)
    writer.hand_over(cell("group.state/aa", b"the next"), lambda: None)
    writer.drain()
    seen.clear()
    for number in range(9):
        writer.hand_over(cell("group.state/aa", b"%d" % number), lambda: None)
        writer.drain()
    writer.close()
    assert sum("wal_checkpoint" in sql for sql in seen) >= 3
    assert not log.exists() or b"a key that was used" not in log.read_bytes()
