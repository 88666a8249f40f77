"""A mark kept beside a store, by which its loss is noticed (docs/adr/0028-clocks-and-disks.md).

A device that lost its store would begin its chains anew, and others would reject them as forked, for ever.
The mark holds the id of the store and the position that its log has reached. It is written after that
position is durable, so it is never ahead of a store that is whole. Its name does not begin with the store's:
to remove the store by `events.db*` leaves the mark.
"""

from __future__ import annotations

import os
from pathlib import Path

from linnet.core.errors import StoreError, StoreLost

ID_BYTES = 16
_TITLE = "linnet store mark 1"
_NUMBER = 20
_ADVICE = (
    "put back {path} as it was; if it is gone for good, make this a new device of the same person: "
    "linnet export FILE --without-log, then linnet import FILE into a new home; if nothing was said by this "
    "device since, remove {mark} and start again"
)


class Mark:
    """The mark of a store, held open to be updated."""

    def __init__(self, path: Path, id: bytes, end: int) -> None:
        """Compare the store at this path with its mark, or make one. `StoreLost` says what to do."""
        self.path = mark_of(path)
        known = _read_last(path)
        if known is not None and known[0] != id:
            raise StoreLost(f"{path} is another store than the one that was here; {_advice(path)}")
        if known is not None and end < known[1]:
            behind = f"{path} ends at position {end}, but it had reached {known[1]}: it is an older copy"
            raise StoreLost(f"{behind}; {_advice(path)}")
        self._title = f"{_TITLE} {id.hex()} "
        self._end = -1
        try:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self.reached(end)
            os.fsync(self._descriptor)
            _remove_former(path)
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written: {error.strerror or error}") from error

    def reached(self, end: int) -> None:
        """Write that the log is durable up to here. Not synced: after a power cut the mark may be behind."""
        if end > self._end:
            self._end = end
            os.pwrite(self._descriptor, f"{self._title}{end:0{_NUMBER}d}\n".encode(), 0)

    def close(self) -> None:
        """Sync and close the mark; again does nothing."""
        if self._descriptor >= 0:
            os.fsync(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1


def mark_of(path: Path) -> Path:
    """Return the path of a store's mark."""
    return path.with_name(f"mark-of-{path.name}")


def former_mark_of(path: Path) -> Path:
    """Return the path at which earlier versions kept a store's mark."""
    return path.with_name(path.name + ".mark")


def check_there(path: Path) -> None:
    """Raise `StoreLost` if the store is gone, but its mark is there. Nothing is created."""
    if not path.exists() and _read_last(path) is not None:
        raise StoreLost(f"{path} is gone; {_advice(path)}")


def is_marked(path: Path) -> bool:
    """Return whether there is a mark of this store, as there is of every store that was opened before."""
    return _read_last(path) is not None


def _advice(path: Path) -> str:
    marks = [str(mark) for mark in (mark_of(path), former_mark_of(path)) if mark.exists()]
    return _ADVICE.format(path=path, mark=" and ".join(marks))


def _read_last(path: Path) -> tuple[bytes, int] | None:
    """Return the content of a store's mark: of the further one, if an earlier version wrote another."""
    marks = [_read(mark_of(path)), _read(former_mark_of(path))]
    return max((mark for mark in marks if mark is not None), key=lambda mark: mark[1], default=None)


def _remove_former(path: Path) -> None:
    """Remove the mark of an earlier version, once the new one is durable under its name."""
    former = former_mark_of(path)
    if not former.exists():
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    former.unlink()


def _read(path: Path) -> tuple[bytes, int] | None:
    """Return the mark in a file; None if there is none, or a power cut left it unreadable."""
    try:
        text = path.read_text(encoding="ascii", errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error
    title, _, rest = text.strip().rpartition(" ")
    try:
        return bytes.fromhex(title.removeprefix(_TITLE)), int(rest)
    except ValueError:
        return None
