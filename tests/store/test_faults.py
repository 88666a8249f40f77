"""A damaged file: whatever was altered, one line names the file, what is wrong and what to do next."""

from __future__ import annotations

import os
import random
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
from tests.store.entries import NEWS, unit

from linnet.core.errors import StoreError
from linnet.event.signing import is_signed, is_sound
from linnet.store.faults import fault
from linnet.store.scrub import scrub
from linnet.store.sqlite import SqliteStore

SEEDS = 2000 if os.environ.get("LINNET_SOAK") else 40
FLIPS = 60


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "events.db"
    with closing(SqliteStore(path)) as store:
        for n in range(40):
            store.log.append(unit(n))
        store.cells.put("x", b"k", b"v")
        done = threading.Event()
        store.commit(done.set)
        assert done.wait(20)
    return path


def put(path: Path, before: bytes, after: bytes) -> None:
    data = path.read_bytes()
    assert len(before) == len(after)
    assert data.count(before) == 1
    path.write_bytes(data.replace(before, after))


def problem(path: Path) -> str:
    """Why a store does not open; a look through all of it finds no fault in saying so."""
    before = path.read_bytes()
    with pytest.raises(StoreError) as raised:
        SqliteStore(path)
    assert path.read_bytes() == before, "nothing is lost"
    try:
        assert not scrub(path, is_signed).is_sound
    except StoreError as error:
        assert_clear(error, path)
    assert_clear(raised.value, path)
    return str(raised.value)


def assert_clear(error: StoreError, path: Path) -> None:
    text, _, advice = str(error).partition("; ")
    assert str(path) in text
    assert "linnet doctor --store" in advice or "put back a copy" in advice
    assert str(error).isprintable()


def test_words_of_sqlite_that_are_no_text_are_told(path: Path) -> None:
    put(path, b"CREATE INDEX unit_by_head", b"CREATE IND\xbaX unit_by_head")
    assert "malformed database schema (unit_by_head)" in problem(path)


def test_a_column_of_another_name_is_told(path: Path) -> None:
    put(
        path,
        b"id INTEGER PRIMARY KEY CHECK (id = 1),\n    position",
        b"id INTEGER PRIMARY KEY CHECK (id = 1),\n    pos\x09tion",
    )
    assert "log_end" in problem(path)


def test_a_column_whose_name_is_no_text_is_told(path: Path) -> None:
    put(path, b"(id = 1),\n    position", b"(id = 1),\n    pos\x96tion")
    assert "log_end" in problem(path)


def test_a_table_of_another_name_is_told(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("ALTER TABLE log_end RENAME TO log_and")
    assert "log_end" in problem(path)


def test_a_unit_of_no_chain_is_told_with_its_file(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE unit SET chain = 77 WHERE position = 3")
    with closing(SqliteStore(path)) as store, pytest.raises(StoreError, match="position 3") as raised:
        store.log.read(NEWS, 0, 100)
    assert_clear(raised.value, path)
    found = scrub(path, lambda entry, card: True)
    assert (found.units, found.astray, found.is_sound) == (40, 1, False)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("units", "x'00'"),
        ("longest", "'many'"),
        ("first", "x'aa'"),
        ("last", "1.5"),
        ("author", "7"),
        ("head", "7"),
    ],
)
def test_a_summary_that_is_none_is_told(path: Path, column: str, value: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"UPDATE chain SET {column} = {value}")
    with closing(SqliteStore(path)) as store, pytest.raises(StoreError, match="chain") as raised:
        store.log.read(NEWS, 0, 100)
    assert_clear(raised.value, path)


@pytest.mark.parametrize("value", ["x'ffff'", "1.5", "'a'"])
def test_an_end_that_is_no_number_is_told(path: Path, value: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"UPDATE log_end SET position = {value}")
    with pytest.raises(StoreError, match="number") as raised:
        SqliteStore(path)
    assert_clear(raised.value, path)


@pytest.mark.parametrize("column", ["first", "count", "head", "raw", "stored_at"])
@pytest.mark.parametrize("value", ["7", "1.5", "'a'", "x'00'"])
def test_a_unit_of_another_shape_is_left_out_and_found(path: Path, column: str, value: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"UPDATE unit SET {column} = {value} WHERE position = 3")
    with closing(SqliteStore(path, lambda entry: entry.raw != b"" and isinstance(entry.raw, bytes))) as store:
        try:
            store.log.read(NEWS, 0, 100)
            store.log.take_damage()
        except StoreError as error:
            assert_clear(error, path)
    scrub(path, is_signed)


def test_what_was_noted_and_cannot_be_read_is_told(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("INSERT INTO cell VALUES ('damaged', x'0000000000000001', x'c1', 0)")
    with pytest.raises(StoreError, match="noted") as raised:
        SqliteStore(path)
    assert_clear(raised.value, path)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_any_altered_bytes_are_told_or_harmless(path: Path, seed: int) -> None:
    luck, data = random.Random(seed), bytearray(path.read_bytes())
    for _ in range(FLIPS):
        data[luck.randrange(100, len(data))] ^= 0xFF
    path.write_bytes(data)
    try:
        scrub(path, is_signed)
    except StoreError as error:
        assert_clear(error, path)
    try:
        with closing(SqliteStore(path, is_sound)) as store:
            store.last_times()
            store.log.read(NEWS, 0, 100)
            store.log.get(unit(3).head)
            list(store.cells.scan("x"))
    except StoreError as error:
        assert_clear(error, path)


def test_a_disk_that_is_full_gets_other_advice(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA max_page_count = 1")
        with pytest.raises(sqlite3.OperationalError) as raised, db:
            db.execute("INSERT INTO cell VALUES ('x', x'00', zeroblob(1000000), 0)")
    assert str(fault(path, "written", raised.value)).endswith(
        "; free space on the disk, then start again: linnet up"
    )
