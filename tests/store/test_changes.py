"""One transaction: all of it or nothing, in statements of many rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.store.entries import ANN, NEWS, PHONE, unit

from linnet.store.schema import migrate, migrations
from linnet.store.writer import Changes, write


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    path = tmp_path / "store.db"
    db = sqlite3.connect(path, isolation_level=None)
    migrate(db, path, migrations())
    yield db
    db.close()


def units(*numbers: int) -> Changes:
    changes = Changes()
    for number in numbers:
        entry = unit(number)
        changes.units.append((number, 1, 1, entry))
        changes.bytes += len(entry.raw)
    return changes


def positions(db: sqlite3.Connection) -> list[int]:
    return [position for (position,) in db.execute("SELECT position FROM unit ORDER BY position")]


def cells(db: sqlite3.Connection) -> list[tuple[str, bytes, bytes]]:
    return db.execute("SELECT space, key, value FROM cell ORDER BY space, key").fetchall()


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 255, 256, 257, 600])
def test_any_number_of_rows_is_written_once_each(db: sqlite3.Connection, count: int) -> None:
    write(db, units(*range(1, count + 1)))
    assert positions(db) == list(range(1, count + 1))


def test_of_many_rows_few_statements_are_made(db: sqlite3.Connection) -> None:
    """Each statement may wait for the interpreter lock, and the rows of one do not."""
    statements: list[str] = []
    db.set_trace_callback(statements.append)
    write(db, units(*range(1, 256 + 16 + 2 + 1)))
    assert len([each for each in statements if each.startswith("INSERT INTO unit")]) == 1 + 1 + 2


def test_an_error_leaves_nothing_of_its_changes(db: sqlite3.Connection) -> None:
    write(db, units(1))
    again = units(2, 1)
    again.cells["x", b"k"] = (1, b"v")
    with pytest.raises(sqlite3.IntegrityError):
        write(db, again)
    assert (positions(db), cells(db), db.in_transaction) == ([1], [], False)
    write(db, units(2))
    assert positions(db) == [1, 2], "and the connection goes on"


def test_cells_are_set_changed_and_deleted(db: sqlite3.Connection) -> None:
    first, second = Changes(), Changes()
    first.cells = {("x", b"a"): (1, b"1"), ("x", b"b"): (2, b"2"), ("y", b"a"): (3, b"3")}
    second.cells = {("x", b"a"): (4, None), ("x", b"b"): (5, b""), ("z", b"none"): (6, None)}
    write(db, first)
    write(db, second)
    assert cells(db) == [("x", b"b", b""), ("y", b"a", b"3")]


def test_a_cut_removes_the_oldest_of_one_topic_and_keeps_the_end(db: sqlite3.Connection) -> None:
    write(db, units(1, 2, 3))
    other = Changes()
    other.units.append((4, 2, 2, unit(1, twin=1)))
    write(db, other)
    cut = Changes()
    cut.cuts, cut.end = {1: 3}, 4
    write(db, cut)
    assert positions(db) == [4]
    assert db.execute("SELECT position FROM log_end").fetchone() == (4,)


def test_a_chain_that_vanished_may_be_back_under_a_new_id(db: sqlite3.Connection) -> None:
    gone, back = Changes(), Changes()
    gone.chains[1] = (1, 1, ANN, PHONE, 1, 1, 0, 0, b"h")
    gone.topics[1] = (1, NEWS, 1, 1, 10, 0)
    write(db, gone)
    back.chains = {2: (2, 1, ANN, PHONE, 1, 1, 5, 5, b"i"), 1: None}
    back.topics = {1: (1, NEWS, 3, 4, 50, 1)}
    write(db, back)
    assert db.execute("SELECT id, first FROM chain").fetchall() == [(2, 5)]
    assert db.execute("SELECT units, events, bytes, stepped FROM topic").fetchall() == [(3, 4, 50, 1)]


def test_what_came_later_counts() -> None:
    changes, later = units(1), units(2)
    changes.cells = {("x", b"k"): (1, b"old"), ("x", b"l"): (2, b"stays")}
    changes.cuts, changes.topics, changes.end = {1: 5}, {1: None}, 9
    later.cells = {("x", b"k"): (3, None)}
    later.cuts, later.topics, later.end = {1: 6, 2: 7}, {1: (1,)}, 8
    changes.absorb(later)
    assert [position for position, *_ in changes.units] == [1, 2]
    assert changes.bytes == 20
    assert changes.cells == {("x", b"k"): (3, None), ("x", b"l"): (2, b"stays")}
    assert (changes.cuts, changes.topics, changes.end) == ({1: 6, 2: 7}, {1: (1,)}, 9)


def test_only_changes_that_hold_something_are_true() -> None:
    assert not Changes()
    assert units(1)
    deleted = Changes()
    deleted.cells["x", b"k"] = (1, None)
    assert deleted
