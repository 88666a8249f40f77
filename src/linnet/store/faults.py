"""What SQLite cannot do with the file of a store, in a line: which file, what is wrong, what to do."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from linnet.core.errors import StoreError

BROKEN = (
    "put back a copy of it as it was last; if there is none, make this a new device of the same person: "
    "linnet export FILE --without-log, then linnet import FILE into a new home (what no other node has "
    "is lost then: keep the damaged file)"
)
"""What to do about a file that cannot be read at all."""

LOOK = f"look what of it is whole: linnet doctor --store; or {BROKEN}"
"""What to do about a file of which something could not be read."""

_ROOM = "free space on the disk, then start again: linnet up"
WRITABLE = "see that its disk is there and that this user may write the file and its directory"
_BUSY = "another program uses it: end that, then start again"
_ADVICE = {
    sqlite3.SQLITE_FULL: _ROOM,
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_LOCKED: _BUSY,
    sqlite3.SQLITE_IOERR: f"{WRITABLE}, and that there is room",
    sqlite3.SQLITE_CANTOPEN: WRITABLE,
    sqlite3.SQLITE_PERM: WRITABLE,
    sqlite3.SQLITE_READONLY: WRITABLE,
}
_PRIMARY = 0xFF
"""The bits of SQLite's code for an error that say its sort; the others go into detail."""

FAULTS = (sqlite3.Error, UnicodeDecodeError)
"""What leaves the functions of `sqlite3`.

The words of an error quote the damaged description of a table, and Python then fails to decode them: that is
a damaged file as well, and no `sqlite3.Error`.
"""


def fault(path: Path, verb: str, error: Exception) -> StoreError:
    """The error of a file that cannot be `verb` (opened, read, written) because of one of `FAULTS`."""
    if isinstance(error, UnicodeDecodeError):
        said = bytes(error.object).decode(errors="replace")
        return StoreError(f"{path} cannot be {verb}: {_shown(said)}; {BROKEN}")
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:  # Not of the file: a connection that is closed, or a bug of ours.
        return StoreError(f"{path} cannot be {verb}: {error}")
    return StoreError(
        f"{path} cannot be {verb}: {_shown(str(error))}; {_ADVICE.get(code & _PRIMARY, BROKEN)}"
    )


@contextmanager
def told(path: Path, verb: str) -> Iterator[None]:
    """Raise `StoreError` in place of any of `FAULTS`."""
    try:
        yield
    except FAULTS as error:
        raise fault(path, verb, error) from error


def damaged(path: Path, what: str) -> StoreError:
    """The error of a file in which something stands that was never written there."""
    return StoreError(f"{path} is damaged: {what}; {LOOK}")


def located(path: Path, error: StoreError) -> StoreError:
    """An error of somebody who read a value and does not know the file, with the file and what to do next."""
    return error if path.name in str(error) else damaged(path, str(error))


def _shown(text: str) -> str:
    """One line that a terminal can show; the mark of advice stays ours."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text).replace(
        "; ", ", "
    )
