"""Older files are brought forward, newer ones refused."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.store.entries import NEWS, unit

from linnet.core.errors import StoreError
from linnet.store.schema import migrate, migrations, version_of
from linnet.store.sqlite import SqliteStore

NEXT = "ALTER TABLE cell ADD COLUMN colour TEXT NOT NULL DEFAULT 'grey';"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def old(path: Path) -> Iterator[sqlite3.Connection]:
    """A store of today's version with something in it, opened as a bare file."""
    store = SqliteStore(path)
    store.log.append(unit(1))
    store.cells.put("x", b"k", b"v")
    store.commit(lambda: None)
    store.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        yield db


def test_an_empty_file_gets_every_step(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        assert version_of(db, path) == 0
        migrate(db, path, migrations())
        assert version_of(db, path) == len(migrations())
        assert db.execute("PRAGMA application_id").fetchone() == (0x4C4E4E54,)


def test_an_older_file_is_brought_forward_with_what_it_holds(old: sqlite3.Connection, path: Path) -> None:
    steps = (*migrations(), NEXT, "CREATE INDEX cell_by_colour ON cell (colour);")
    migrate(old, path, steps)
    assert version_of(old, path) == len(steps)
    assert old.execute("SELECT space, key, value, colour FROM cell WHERE space = 'x'").fetchall() == [
        ("x", b"k", b"v", "grey")
    ]
    migrate(old, path, steps)


def test_a_step_that_fails_changes_nothing(old: sqlite3.Connection, path: Path) -> None:
    columns = len(old.execute("SELECT * FROM cell").fetchone())
    expected = f"cannot be migrated to schema {len(migrations()) + 1}: no such table: nowhere"
    with pytest.raises(StoreError, match=expected):
        migrate(old, path, (*migrations(), NEXT + "DELETE FROM nowhere;"))
    assert version_of(old, path) == len(migrations())
    assert len(old.execute("SELECT * FROM cell").fetchone()) == columns


def test_a_newer_file_is_refused_with_what_to_do(old: sqlite3.Connection, path: Path) -> None:
    newer = len(migrations()) + 1
    old.execute(f"PRAGMA user_version = {newer}")
    old.close()
    expected = rf"newer Linnet \(schema {newer}, this one knows {newer - 1}\): upgrade Linnet"
    with pytest.raises(StoreError, match=expected):
        SqliteStore(path)


def test_a_file_whose_first_opening_was_cut_off_is_begun_again(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
    assert path.stat().st_size > 0
    store = SqliteStore(path)
    assert store.log.append(unit(1)) == 1
    assert store.log.read(NEWS, 0, 1) == [(1, unit(1))]
    store.close()
