"""Cells of which a disk gives back other bytes: they are never handed out, on any engine."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.store.entries import unit

from linnet.core.errors import CellsDamaged, StoreError
from linnet.core.stores import CellDamage
from linnet.event.signing import is_signed
from linnet.sim.nemesis.open_node import DamageableStore
from linnet.store.base import CommittingStore
from linnet.store.memory import MemoryStore
from linnet.store.schema import migrations
from linnet.store.scrub import scrub
from linnet.store.sqlite import SqliteStore

NEEDED, EXPENDABLE, TOLD = "cursor", "dialed", f"group.text/{'ab' * 32}"
SPACES = (NEEDED, EXPENDABLE, TOLD)
A, B, C = KEYS = (b"anna", b"bert", b"cleo")


def commit(store: CommittingStore) -> None:
    for _ in range(2):  # The second lets the engine forget what it need not remember.
        done = threading.Event()
        store.commit(done.set)
        assert done.wait(20)


def alter(path: Path, sql: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        assert db.execute(sql, values).rowcount == 1


Spoil = Callable[[str, bytes], None]


@pytest.fixture(params=["sqlite", "simulated"])
def struck(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[CommittingStore, Spoil]]:
    """A store with three values in each space, and what damages one of them."""
    path = tmp_path / "s.db"
    store: SqliteStore | DamageableStore
    store = SqliteStore(path) if request.param == "sqlite" else DamageableStore()

    def spoil(space: str, key: bytes) -> None:
        if isinstance(store, DamageableStore):
            store.cells.spoil(space, key)
        else:
            alter(path, "UPDATE cell SET value = x'00' WHERE space = ? AND key = ?", space, key)

    for space in SPACES:
        for key in KEYS:
            store.cells.put(space, key, b"value " + key)
    commit(store)
    yield store, spoil
    store.close()


@pytest.mark.parametrize("space", [NEEDED, TOLD])
def test_what_a_node_may_not_miss_is_refused_by_name(
    struck: tuple[CommittingStore, Spoil], space: str
) -> None:
    store, spoil = struck
    spoil(space, B)
    for _ in range(2):
        with pytest.raises(CellsDamaged) as raised:
            store.cells.get(space, B)
        assert (raised.value.space, raised.value.keys) == (space, (B,))
        with pytest.raises(CellsDamaged) as raised:
            store.cells.scan(space)
        assert raised.value.sound == ((A, b"value " + A), (C, b"value " + C))
    assert store.cells.get(space, A) == b"value " + A
    assert store.cells.take_damage() == [CellDamage(space, B)]
    assert store.cells.take_damage() == []
    assert store.damaged_cells == (CellDamage(space, B),)


@pytest.mark.parametrize("mend", ["put", "delete"])
def test_damage_ends_with_what_takes_its_place(struck: tuple[CommittingStore, Spoil], mend: str) -> None:
    store, spoil = struck
    spoil(NEEDED, B)
    with pytest.raises(CellsDamaged):
        store.cells.get(NEEDED, B)
    if mend == "put":
        store.cells.put(NEEDED, B, b"new")
    else:
        store.cells.delete(NEEDED, B)
    for _ in range(2):
        assert store.cells.get(NEEDED, B) == (b"new" if mend == "put" else None)
        assert len(list(store.cells.scan(NEEDED))) == (3 if mend == "put" else 2)
        assert store.damaged_cells == ()
        commit(store)


@pytest.mark.parametrize("reading", ["get", "scan"])
def test_what_comes_again_is_forgotten_and_told_once(
    struck: tuple[CommittingStore, Spoil], reading: str
) -> None:
    store, spoil = struck
    spoil(EXPENDABLE, B)
    left = [(A, b"value " + A), (C, b"value " + C)]
    for _ in range(2):
        if reading == "get":
            assert store.cells.get(EXPENDABLE, B) is None
        assert list(store.cells.scan(EXPENDABLE)) == left
        commit(store)
    assert store.cells.take_damage() == [CellDamage(EXPENDABLE, B)]
    assert store.damaged_cells == ()


def test_memory_is_never_damaged() -> None:
    store = MemoryStore()
    store.cells.put(NEEDED, b"a", b"1")
    assert (store.cells.take_damage(), store.damaged_cells) == ([], ())


# One file, whatever of it is altered.


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "events.db"
    with closing(SqliteStore(path)) as store:
        for space in SPACES:
            for key in KEYS:
                store.cells.put(space, key, b"value " + key)
        commit(store)
    return path


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("column", ["space", "key", "value", "checksum"])
def test_one_altered_bit_anywhere_in_a_value_is_found(path: Path, column: str, seed: int) -> None:
    luck = random.Random(seed)
    with closing(sqlite3.connect(path)) as db, db:
        rows = db.execute("SELECT space, key, value, checksum FROM cell WHERE space <> 'store'").fetchall()
        space, key, value, checksum = luck.choice(rows)
        row = {"space": space.encode(), "key": key, "value": value, "checksum": checksum.to_bytes(8, "big")}
        wrong = bytearray(row[column])
        wrong[luck.randrange(len(wrong))] ^= 1 << luck.randrange(8)
        row[column] = bytes(wrong)
        db.execute("DELETE FROM cell WHERE space = ? AND key = ?", (space, key))
        number = int.from_bytes(row["checksum"], "big", signed=True)
        db.execute(
            "INSERT INTO cell VALUES (CAST(? AS TEXT), ?, ?, ?)",
            (row["space"], row["key"], row["value"], number),
        )
    found = scrub(path, is_signed)
    assert (found.cells, len(found.damaged_cells), found.is_sound) == (len(rows) + 1, 1, False)
    if space == NEEDED:
        with pytest.raises(
            StoreError, match=r"is damaged: values of it are not what was written \(1 of "
        ) as raised:
            SqliteStore(path)
        assert str(path) in str(raised.value)
        assert "linnet doctor --store" in str(raised.value)
    elif column != "space":
        SqliteStore(path).close()


@pytest.mark.parametrize("column", ["key", "value", "checksum"])
@pytest.mark.parametrize("value", ["7", "1.5", "'a'", "CAST(x'ff00' AS TEXT)", "x'00'"])
def test_values_of_another_shape_are_found(path: Path, column: str, value: str) -> None:
    alter(path, f"UPDATE cell SET {column} = {value} WHERE space = ? AND key = ?", NEEDED, B)
    assert scrub(path, is_signed).damaged_cells == (NEEDED,)
    with pytest.raises(CellsDamaged, match=r"not what was written \(1 of places of subscriptions\)"):
        SqliteStore(path)


def test_a_damaged_card_accuses_no_unit(path: Path) -> None:
    with closing(SqliteStore(path)) as store:
        store.log.append(unit(1))
        store.cells.put("card", unit(1).author + unit(1).device, b"a card")
        commit(store)
    alter(path, "UPDATE cell SET value = x'00' WHERE space = 'card'")
    found = scrub(path, lambda entry, card: card is None)
    assert (found.units, found.damaged, found.damaged_cells) == (1, {}, ("card",))


def test_a_damaged_number_of_the_store_is_no_other_store(path: Path) -> None:
    alter(path, "UPDATE cell SET value = zeroblob(16) WHERE space = 'store'")
    with pytest.raises(StoreError, match="is damaged"):
        SqliteStore(path)


# Files that older versions wrote.

OLD = """
import os, signal, sys
from pathlib import Path
from linnet.store import schema
from linnet.store.sqlite import SqliteStore

calls, whole = 0, schema.cell_checksum

def checksum(space, key, value):
    global calls
    calls += 1
    if calls == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    return whole(space, key, value)

schema.cell_checksum = checksum
SqliteStore(Path(sys.argv[1]))
"""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A file without checksums."""
    path = tmp_path / "old.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript(migrations()[0])
        db.execute("PRAGMA application_id = 0x4C4E4E54")
        db.execute("PRAGMA user_version = 1")
        db.execute("PRAGMA journal_mode = WAL")
        for number in range(3000):
            db.execute("INSERT INTO cell VALUES (?, ?, ?)", (NEEDED, b"%06d" % number, b"v" * (number % 999)))
    return path


def test_an_older_file_gets_checksums_and_keeps_its_values(old: Path) -> None:
    assert scrub(old, is_signed).is_sound
    with closing(SqliteStore(old)) as store:
        values = dict(store.cells.scan(NEEDED))
        assert values == {b"%06d" % number: b"v" * (number % 999) for number in range(3000)}
    found = scrub(old, is_signed)
    assert (found.cells, found.is_sound) == (3001, True)
    alter(old, "UPDATE cell SET value = x'00' WHERE key = ?", b"000007")
    with pytest.raises(CellsDamaged):
        SqliteStore(old)


def test_a_value_that_is_no_bytes_does_not_stop_a_migration(old: Path) -> None:
    alter(old, "UPDATE cell SET value = CAST(x'ff00' AS TEXT) WHERE key = ?", b"000007")
    with pytest.raises(CellsDamaged, match=r"\(1 of places of subscriptions\)"):
        SqliteStore(old)
    assert len(scrub(old, is_signed).damaged_cells) == 1


def test_a_migration_that_is_killed_again_and_again_ends_well(old: Path) -> None:
    for calls in (1, 1500, 3000):
        killed = subprocess.run([sys.executable, "-c", OLD, str(old), str(calls)], check=False, timeout=60)
        assert killed.returncode == -signal.SIGKILL
        assert scrub(old, is_signed).cells == 0, "nothing of it is done"
    with closing(SqliteStore(old)) as store:
        assert len(list(store.cells.scan(NEEDED))) == 3000
    assert scrub(old, is_signed).is_sound
