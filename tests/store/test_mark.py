"""The mark beside a store: one that is lost, replaced or older is noticed, a whole one never refused."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from tests.store.entries import NEWS, unit

from linnet.core.errors import StoreLost
from linnet.core.spaces import STORE_NUMBER
from linnet.store.mark import former_mark_of, mark_of
from linnet.store.sqlite import SqliteStore

WAIT = 20.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.db"


def write(path: Path, *numbers: int) -> None:
    with closing(SqliteStore(path)) as store:
        for number in numbers:
            store.log.append(unit(number))
        done = threading.Event()
        store.commit(done.set)
        assert done.wait(WAIT)


def remove(path: Path) -> None:
    for part in path.parent.glob(path.name + "*"):
        part.unlink()


def remove_store(path: Path) -> None:
    for part in path.parent.glob(path.name + "*"):
        if part != former_mark_of(path):
            part.unlink()


def test_a_store_that_is_gone_is_noticed_and_nothing_is_put_in_its_place(path: Path) -> None:
    write(path, 0, 1)
    remove(path)
    for _ in range(2):
        with pytest.raises(
            StoreLost, match=r"events\.db is gone; put back .* linnet export FILE --without-log"
        ):
            SqliteStore(path)
    assert not path.exists()


def test_another_store_in_its_place_is_noticed(path: Path, tmp_path: Path) -> None:
    write(path, 0, 1)
    other = tmp_path / "other" / "events.db"
    other.parent.mkdir()
    write(other, 0, 1, 2)
    remove(path)
    shutil.copy(other, path)
    with pytest.raises(StoreLost, match="another store"):
        SqliteStore(path)


def test_an_older_copy_is_noticed_and_the_right_one_opens_again(path: Path, tmp_path: Path) -> None:
    write(path, 0, 1)
    shutil.copy(path, tmp_path / "backup")
    write(path, 2)
    shutil.copy(path, tmp_path / "newest")
    remove(path)
    shutil.copy(tmp_path / "backup", path)
    with pytest.raises(StoreLost, match="ends at position 2, but it had reached 3: it is an older copy"):
        SqliteStore(path)
    shutil.copy(tmp_path / "newest", path)
    write(path, 3)


def test_eviction_moves_no_store_back(path: Path) -> None:
    write(path, *range(10))
    with closing(SqliteStore(path)) as store:
        assert len(store.log.evict(NEWS, None, 0, 100)) == 10
        store.commit(lambda: None)
    write(path, 10)


def test_a_store_of_a_version_without_marks_is_given_one(path: Path) -> None:
    write(path, 0)
    mark_of(path).unlink()
    write(path, 1)
    assert mark_of(path).exists()


def test_a_mark_that_cannot_be_read_is_made_anew(path: Path) -> None:
    write(path, 0)
    mark_of(path).write_bytes(b"\0" * 40)
    write(path, 1)
    remove(path)
    with pytest.raises(StoreLost):
        SqliteStore(path)


def test_a_mark_of_an_earlier_version_moves_to_where_a_glob_of_the_store_leaves_it(path: Path) -> None:
    write(path, 0, 1)
    mark_of(path).rename(former_mark_of(path))
    write(path, 2)
    assert not former_mark_of(path).exists()
    remove(path)
    with pytest.raises(StoreLost, match="is gone"):
        SqliteStore(path)


def test_a_move_of_the_mark_that_was_cut_off_is_ended_at_the_next_start(path: Path) -> None:
    write(path, 0, 1)
    shutil.copy(mark_of(path), former_mark_of(path))
    mark_of(path).write_bytes(b"")  # Made, and not written yet.
    with closing(SqliteStore(path)):
        pass
    assert not former_mark_of(path).exists()
    shutil.copy(mark_of(path), former_mark_of(path))  # Both are written.
    write(path, 2)
    assert not former_mark_of(path).exists()
    assert mark_of(path).read_text().split()[-1] == f"{3:020d}"


def test_the_mark_that_is_further_counts_where_an_earlier_version_ran_meanwhile(
    path: Path, tmp_path: Path
) -> None:
    write(path, 0)
    shutil.copy(path, tmp_path / "backup")
    behind = mark_of(path).read_text()
    write(path, 1)
    mark_of(path).rename(former_mark_of(path))
    mark_of(path).write_text(behind)
    remove_store(path)
    shutil.copy(tmp_path / "backup", path)
    with pytest.raises(StoreLost, match="older copy"):
        SqliteStore(path)


_KILLED = """
import os, signal, sys, threading
from pathlib import Path
from linnet.store.sqlite import SqliteStore
from tests.store.entries import unit
store = SqliteStore(Path(sys.argv[1]))
for number in range(50):
    store.log.append(unit(number))
    done = threading.Event()
    store.commit(done.set)
    done.wait(20)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_leaves_a_mark_that_its_store_fits(path: Path) -> None:
    subprocess.run([sys.executable, "-c", _KILLED, str(path)], check=False, timeout=60)
    assert mark_of(path).read_text().split()[-1] == f"{50:020d}"
    write(path, 50)


def test_a_store_that_may_be_an_older_copy_signs_under_another_number(path: Path) -> None:
    """A storage node is not held to what it signed after the copy was made that its operator put back."""

    def number() -> bytes | None:
        with closing(SqliteStore(path)) as store:
            return store.cells.get(*STORE_NUMBER)

    with closing(SqliteStore(path)) as store:
        store.cells.put(*STORE_NUMBER, b"12345678")
        done = threading.Event()
        store.commit(done.set)
        assert done.wait(WAIT)
    assert number() == b"12345678"
    mark_of(path).unlink()
    assert number() is None
    assert number() is None, "also if it is closed before anything is committed"
