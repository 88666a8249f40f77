from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from linnet.core.errors import StoreError
from linnet.store.reader import Reader


@pytest.fixture
def reader() -> Iterator[Reader]:
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.executescript(
        "CREATE TABLE t (a INTEGER, b TEXT); INSERT INTO t VALUES (1, 'x'), (2, NULL), (3, 'z');"
    )
    yield Reader(db, Path("events.db"))
    db.close()


def test_answers_come_whole(reader: Reader) -> None:
    assert reader.all("SELECT a, b FROM t WHERE a > ? ORDER BY a", 1) == [(2, None), (3, "z")]
    assert reader.first("SELECT a FROM t ORDER BY a DESC") == (3,)
    assert reader.first("SELECT a FROM t WHERE a > 3") is None


def test_a_number_that_is_not_there_is_zero(reader: Reader) -> None:
    assert reader.number("SELECT max(a) FROM t") == 3
    assert reader.number("SELECT max(a) FROM t WHERE a > 3") == 0, "null"
    assert reader.number("SELECT a FROM t WHERE a > 3") == 0, "absent"


def test_what_cannot_be_read_is_an_error_of_the_store(reader: Reader) -> None:
    with pytest.raises(StoreError, match="cannot be read: no such table: u"):
        reader.all("SELECT * FROM u")
    reader.close()
    with pytest.raises(StoreError, match="cannot be read"):
        reader.number("SELECT 1")
