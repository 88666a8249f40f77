"""A folder for whatever Spark leaves on disk, which goes with its process, even one that was killed.

Whoever makes one holds a lock on a file in it. The system lets go of it when the process ends, however that
comes, and the next session removes folders whose lock nobody holds.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

PREFIX = "linnet-lab-"
LOCK = ".lock"


@contextmanager
def scratch_folder() -> Generator[Path]:
    """A fresh folder where temporary files go (``TMPDIR``), removed at the end."""
    sweep(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        held = _locked(folder)
        try:
            yield folder
        finally:
            os.close(held)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _locked(folder: Path) -> int:
    """Hold a new lock. It gets its name once it is held: nobody takes the folder for left behind."""
    fresh = folder / f"{LOCK}.fresh"
    held = os.open(fresh, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(held, fcntl.LOCK_EX)
    fresh.rename(folder / LOCK)
    return held


def sweep(where: Path) -> list[Path]:
    """Remove folders of processes that are gone; those that were removed."""
    return [folder for folder in sorted(where.glob(f"{PREFIX}*")) if _is_abandoned(folder) and _gone(folder)]


def _is_abandoned(folder: Path) -> bool:
    try:
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False  # somebody else's, or being made, or just removed
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True


def _gone(folder: Path) -> bool:
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()
