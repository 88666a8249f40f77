"""The shape of a store file, and how older files are brought to it.

Each file under ``migrations/`` takes a store one version further; the version is kept in the file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from linnet.core.errors import StoreError

APPLICATION_ID = 0x4C4E4E54
"""``LNNT``: tells a store from the SQLite file of another program."""

BROKEN = (
    "put back a copy of it as it was last; if there is none, make this a new device of the same person: "
    "linnet export FILE --without-log, then linnet import FILE into a new home"
)
"""What to do about a file that cannot be read at all."""


def migrations() -> tuple[str, ...]:
    """The steps from an empty file to the newest version, in order."""
    folder = resources.files("linnet.store") / "migrations"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda f: f.name)
    return tuple(file.read_text(encoding="utf-8") for file in files)


def migrate(db: sqlite3.Connection, path: Path, steps: Sequence[str]) -> None:
    """Bring a file to the newest version, each step in a transaction of its own.

    Raises `StoreError` for a file of another program and for one of a newer Linnet, untouched.
    """
    version = version_of(db, path)
    if version > len(steps):
        raise StoreError(
            f"{path} was written by a newer Linnet (schema {version}, this one knows {len(steps)}): "
            "upgrade Linnet, or choose another data directory"
        )
    for number, step in enumerate(steps[version:], version + 1):
        try:
            db.executescript(
                f"BEGIN IMMEDIATE; {step}\n; PRAGMA application_id = {APPLICATION_ID}; "
                f"PRAGMA user_version = {number}; COMMIT;"
            )
        except sqlite3.Error as error:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise StoreError(f"{path} could not be migrated to schema {number}: {error}") from error


def version_of(db: sqlite3.Connection, path: Path) -> int:
    """The schema version of a file; 0 if it is empty. `StoreError` if it is no store."""
    try:
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (version,) = db.execute("PRAGMA user_version").fetchone()
        (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError as error:
        raise StoreError(f"{path} cannot be read as a store: {error}; {BROKEN}") from error
    if application == APPLICATION_ID:
        return int(version)
    if application == version == tables == 0:
        return 0
    raise StoreError(f"{path} is the SQLite file of another program: choose another path")
