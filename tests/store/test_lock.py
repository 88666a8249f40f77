from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from linnet.core.errors import StoreError
from linnet.store.sqlite import FileLock


def test_one_at_a_time_and_the_owner_is_named(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    lock = FileLock(path)
    with pytest.raises(StoreError, match=rf"events\.db is in use by process {os.getpid()}: stop it"):
        FileLock(path)
    FileLock(tmp_path / "other.db").release()
    lock.release()
    lock.release()
    FileLock(path).release()


def test_the_lock_is_beside_the_file_and_private(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    lock = FileLock(path)
    (file,) = tmp_path.iterdir()
    assert file.name == "events.db.lock"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text() == f"{os.getpid()}\n"
    lock.release()
    assert file.exists(), "removing it would race with an opener"


def test_a_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    code = (
        "import os, signal, sys; from pathlib import Path; from linnet.store.sqlite import FileLock\n"
        "lock = FileLock(Path(sys.argv[1])); os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(path)], timeout=60, check=False)
    assert killed.returncode == -9
    old = (tmp_path / "events.db.lock").read_text()
    assert old.strip() != str(os.getpid())
    FileLock(path).release()
    assert (tmp_path / "events.db.lock").read_text() == f"{os.getpid()}\n", "nothing of an old owner stays"


def test_a_place_that_cannot_be_locked_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"none/events\.db\.lock cannot be opened: No such file"):
        FileLock(tmp_path / "none" / "events.db")
