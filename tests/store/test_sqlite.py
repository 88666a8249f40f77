"""What only the SQLite engine has: a file, a lock, a disk that may fail."""

from __future__ import annotations

import os
import resource
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.store.entries import ANN, NEWS, PHONE, unit

from linnet.core.errors import StoreError
from linnet.core.stores import Kept
from linnet.store.sqlite import SqliteStore

WAIT = 20.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@contextmanager
def full_disk(used: int) -> Iterator[None]:
    """No file of this process may grow past so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (used, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_what_was_handed_over_survives_and_the_rest_does_not(path: Path) -> None:
    store = SqliteStore(path)
    store.log.append(unit(1, at=1.5))
    store.cells.put("x", b"k", b"kept")
    store.commit(lambda: None)
    store.log.append(unit(2))
    store.cells.put("x", b"k", b"lost")
    store.close()
    store = SqliteStore(path)
    assert store.log.read(NEWS, 0, 10) == [(1, unit(1, at=1.5))]
    assert store.cells.get("x", b"k") == b"kept"
    store.close()


def test_a_position_is_never_given_twice(path: Path) -> None:
    store = SqliteStore(path)
    for n in range(1, 4):
        store.log.append(unit(n))
    store.log.evict(NEWS, None, 0, 10)
    store.commit(lambda: None)
    store.close()
    store = SqliteStore(path)
    assert store.log.kept(NEWS) == Kept(0, 0, 0, None)
    assert store.log.append(unit(4)) == 4
    store.close()


def test_done_is_called_in_the_thread_of_the_writer(path: Path) -> None:
    store = SqliteStore(path)
    store.log.append(unit(1))
    threads: list[str] = []
    called = threading.Event()

    def done() -> None:
        threads.append(threading.current_thread().name)
        called.set()

    store.commit(done)
    assert called.wait(WAIT)
    assert threads == ["store store.db"]
    store.close()


def test_what_comes_during_a_commit_waits_for_the_next_and_is_read_meanwhile(path: Path) -> None:
    store = SqliteStore(path)
    hold, held = threading.Event(), threading.Event()

    def block() -> None:
        held.set()
        hold.wait(WAIT)

    store.log.append(unit(1))
    store.commit(block)
    assert held.wait(WAIT)
    order: list[int] = []
    for n in range(2, 50):
        store.log.append(unit(n, size=100))
        store.commit(lambda n=n: order.append(n))  # type: ignore[misc]
    assert order == []
    assert store.backlog == 48 * 100
    assert [position for position, _ in store.log.read(NEWS, 0, 100)] == list(range(1, 50))
    assert len(store.log.chain(NEWS, ANN, PHONE, 1, 100, 100)) == 49
    hold.set()
    done = threading.Event()
    store.commit(done.set)
    assert done.wait(WAIT)
    assert order == list(range(2, 50))
    assert store.backlog == 0
    store.close()


def test_a_unit_that_came_again_is_known_while_it_is_under_way(path: Path) -> None:
    store = SqliteStore(path)
    hold, held = threading.Event(), threading.Event()

    def block() -> None:
        held.set()
        hold.wait(WAIT)

    assert store.log.append(unit(1)) == 1
    store.commit(block)
    assert held.wait(WAIT)
    store.log.evict(NEWS, None, 0, 1)
    assert store.log.append(unit(1)) == 2
    store.commit(lambda: None)
    assert store.log.append(unit(1)) is None
    assert store.log.get(unit(1).head) == unit(1)
    hold.set()
    store.close()


def test_a_failing_disk_is_told_and_loses_nothing_durable(path: Path) -> None:
    store = SqliteStore(path)
    store.log.append(unit(1, size=10))
    durable = threading.Event()
    store.commit(durable.set)
    assert durable.wait(WAIT)
    failures: list[StoreError] = []
    told = threading.Event()

    def report(error: StoreError) -> None:
        failures.append(error)
        told.set()

    store.on_failure(report)
    called: list[int] = []
    with full_disk(path.with_name("store.db-wal").stat().st_size):
        store.log.append(unit(2, size=1_000_000))
        store.commit(lambda: called.append(2))
        assert told.wait(WAIT)
    assert failures == [store.failed]
    with pytest.raises(StoreError, match="cannot be written"):
        store.commit(lambda: called.append(3))
    late: list[StoreError] = []
    store.on_failure(late.append)
    assert late == failures
    assert called == []
    assert store.log.end() == 2
    store.log.append(unit(3))
    with pytest.raises(StoreError, match="cannot be written"):
        store.rollback()
    with pytest.raises(StoreError, match="cannot be written"):
        store.close()
    store = SqliteStore(path)
    assert store.log.read(NEWS, 0, 10) == [(1, unit(1, size=10))]
    store.close()


def test_a_closed_store_refuses(path: Path) -> None:
    store = SqliteStore(path)
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.commit(lambda: None)
    with pytest.raises(StoreError, match="cannot be read"):
        store.log.read(NEWS, 0, 1)


def test_only_its_owner_may_read_a_store(path: Path) -> None:
    store = SqliteStore(path)
    store.log.append(unit(1))
    store.commit(lambda: None)
    files = sorted(path.parent.iterdir())
    assert [file.name for file in files] == [
        "mark-of-store.db",
        "store.db",
        "store.db-shm",
        "store.db-wal",
        "store.db.lock",
    ]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    store.close()
    path.chmod(0o644)
    SqliteStore(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_second_opener_is_refused_by_name_of_the_first(path: Path) -> None:
    store = SqliteStore(path)
    with pytest.raises(StoreError, match=f"in use by process {os.getpid()}"):
        SqliteStore(path)
    code = (
        "import sys; from pathlib import Path; from linnet.store.sqlite import SqliteStore\n"
        "try: SqliteStore(Path(sys.argv[1]))\nexcept Exception as error: print(type(error).__name__, error)"
    )
    other = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=60, check=True
    )
    assert other.stdout.startswith(f"StoreError {path} is in use by process {os.getpid()}: ")
    store.close()
    SqliteStore(path).close()


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"none/store\.db\.lock cannot be opened: No such file"):
        SqliteStore(tmp_path / "none" / "store.db")


def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    path.write_bytes(b"# a text of somebody else\n" * 100)
    with pytest.raises(StoreError, match=r"cannot be read as a store: .*; put back a copy .*--without-log"):
        SqliteStore(path)
    assert path.read_bytes().startswith(b"# a text")


def test_the_file_of_another_program_is_refused_untouched(path: Path) -> None:
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE bookmark (url TEXT)")
    other.commit()
    other.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another program"):
        SqliteStore(path)
    assert path.read_bytes() == before


def test_a_store_that_fails_half_way_lets_go_of_its_file(path: Path) -> None:
    SqliteStore(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("DROP TABLE log_end")
    for _ in range(2):
        with pytest.raises(
            StoreError, match=r"is damaged: the description of its tables is wrong \(log_end\)"
        ):
            SqliteStore(path)


def test_many_chains_and_stretches_are_found(path: Path) -> None:
    """Heads are indexed by stretches of 16,384 positions: look across three of them."""
    store = SqliteStore(path)
    units = [unit(n, size=1) for n in range(40_000)]
    for entry in units:
        store.log.append(entry)
    done = threading.Event()
    store.commit(done.set)
    assert done.wait(WAIT)
    store.close()
    store = SqliteStore(path)
    for n in (0, 16_382, 16_383, 16_384, 32_768, 39_999):
        assert store.log.get(units[n].head) == units[n]
    assert store.log.get(unit(40_000).head) is None
    assert [store.log.append(entry) for entry in units[::5_000]] == [None] * 8
    store.close()
