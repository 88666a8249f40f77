"""Errors of SQLite with a store's file, in one line: which file, what is wrong, what to do."""

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
"""Advice for a file that cannot be read at all."""

LOOK = f"look what of it is whole: linnet doctor --store; or {BROKEN}"
"""Advice for a file that could not be read in part."""

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
"""The bits of SQLite's error code that give its kind; the others give details."""

FAULTS = (sqlite3.Error, UnicodeDecodeError)
"""The errors that functions of `sqlite3` raise.

An error message quotes the damaged description of a table, which Python may then fail to decode: that is a
damaged file as well, and no `sqlite3.Error`.
"""


def fault(path: Path, verb: str, error: Exception) -> StoreError:
    """Return the error of a file that cannot be `verb` (opened, read, written) because of one of `FAULTS`."""
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
    """Return the error of a file with content that was never written there."""
    return StoreError(f"{path} is damaged: {what}; {LOOK}")


def located(path: Path, error: StoreError) -> StoreError:
    """Return an error of reading a value, with the file and advice added if it lacks them."""
    return error if path.name in str(error) else damaged(path, str(error))


def _shown(text: str) -> str:
    """Return one line that a terminal can show, without the mark that separates our advice."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text).replace(
        "; ", ", "
    )
