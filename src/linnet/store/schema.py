"""The schema of a store file, and the migration of older files to it.

Each file under ``migrations/`` takes a store one version further; the version is kept in the file.

A cell has a checksum, by which a value altered by a disk is noticed. It covers space and key as well, so that
a value in another place does not fit. It has no key of its own: it is against disks, not against people
(docs/adr/0034-damaged-cells.md).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from functools import lru_cache
from importlib import resources
from pathlib import Path
from zlib import crc32

from linnet.core.errors import StoreError
from linnet.store.faults import BROKEN, FAULTS, fault

NO_CELL = -1
"""A checksum for a row that was never a cell; it matches nothing."""


def cell_checksum(space: object, key: object, value: object) -> int:
    """Return the CRC-32 of a row as SQLite returns it, of whatever types; `space` in bytes."""
    if not (isinstance(space, bytes) and isinstance(key, bytes) and isinstance(value, bytes)):
        return NO_CELL
    # The length of the key counts, too: bytes that moved from the key to the value would be the same.
    return crc32(value, crc32(key, crc32(space) ^ len(key)))


def is_sound(space: str, key: object, value: object, checksum: object) -> bool:
    """Return whether a row of the database is as it was written."""
    return checksum == cell_checksum(_encoded(space), key, value) != NO_CELL


@lru_cache(4096)
def _encoded(space: str) -> bytes:
    return space.encode()


APPLICATION_ID = 0x4C4E4E54
"""``LNNT``: tells a store from the SQLite file of another program."""

# As bytes: the name of a column in a damaged file need not be text. Comments and checks are not compared, so
# that they may be rewritten.
_SHAPE = """SELECT CAST(m.tbl_name AS BLOB), CAST(m.type AS BLOB), CAST(m.name AS BLOB),
        CAST(c.name AS BLOB), CAST(c.type AS BLOB), c.pk
    FROM sqlite_master AS m LEFT JOIN pragma_table_info(m.name) AS c
    WHERE m.type IN ('table', 'index') AND m.name NOT LIKE 'sqlite_stat%'"""


def migrations() -> tuple[str, ...]:
    """Return the steps from an empty file to the newest version, in order."""
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
    define_functions(db)
    for number, step in enumerate(steps[version:], version + 1):
        try:
            db.executescript(
                f"BEGIN IMMEDIATE; {step}\n; PRAGMA application_id = {APPLICATION_ID}; "
                f"PRAGMA user_version = {number}; COMMIT;"
            )
        except FAULTS as error:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise fault(path, f"migrated to schema {number}", error) from error
    check_shape(db, path, steps)


def version_of(db: sqlite3.Connection, path: Path) -> int:
    """Return the schema version of a file; 0 if it is empty. `StoreError` if it is no store."""
    try:
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (version,) = db.execute("PRAGMA user_version").fetchone()
        (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except FAULTS as error:
        raise fault(path, "read as a store", error) from error
    if application == APPLICATION_ID:
        return int(version)
    if application == version == tables == 0:
        return 0
    raise StoreError(f"{path} is the SQLite file of another program: choose another path")


def check_shape(db: sqlite3.Connection, path: Path, steps: Sequence[str]) -> None:
    """Raise `StoreError` if the tables differ from those that these steps make: the file is damaged.

    A missing column would otherwise be noticed only when it is read, days after the start.
    """
    with closing(sqlite3.connect(":memory:")) as model:
        define_functions(model)
        for step in steps:
            model.executescript(step)
        wanted = model.execute(_SHAPE).fetchall()
    try:
        found = db.execute(_SHAPE).fetchall()
    except FAULTS as error:
        raise fault(path, "read as a store", error) from error
    wrong = sorted({row[0] for row in {*wanted} ^ {*found}})
    if wrong:
        names = ", ".join(name.decode("ascii", errors="replace") for name in wrong)
        raise StoreError(f"{path} is damaged: the description of its tables is wrong ({names}); {BROKEN}")


def define_functions(db: sqlite3.Connection) -> None:
    """Define our functions that migration steps and queries call."""
    db.create_function("cell_checksum", 3, cell_checksum, deterministic=True)
