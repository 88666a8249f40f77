"""One process per store: a lock file beside it, held while it is open and freed by any death."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from linnet.core.errors import StoreError


class FileLock:
    """Exclusive use of a path. The lock file stays behind: removing it would race with an opener."""

    def __init__(self, path: Path) -> None:
        # Beside the store, not on it: closing any descriptor of a database drops SQLite's own locks.
        lock = path.with_name(path.name + ".lock")
        try:
            self._descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"{lock} cannot be opened: {error.strerror}") from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.read(self._descriptor, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(self._descriptor)
            raise StoreError(
                f"{path} is in use by process {owner}: stop it, or choose another data directory"
            ) from error
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let others in; again does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
