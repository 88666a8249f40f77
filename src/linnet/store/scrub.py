"""Looking through a whole store: every unit is read and checked, and what is damaged is named.

It reads on a connection of its own and changes nothing, so a node may run meanwhile. `note` leaves what was
found for the next start of the node, which fetches it again from others.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import msgspec
from msgspec import Struct

from linnet.core.stores import Damage, Entry
from linnet.store.faults import told
from linnet.store.reader import entry_of
from linnet.store.schema import check_shape, migrations, version_of

_UNITS = """SELECT position, topic.topic, author, device, unit.first, count, unit.head, stored_at, raw
    FROM unit LEFT JOIN chain ON chain.id = unit.chain LEFT JOIN topic ON topic.id = unit.topic
    WHERE position > ? ORDER BY position LIMIT ?"""
_PAGE = 256
_PROBLEMS = 20
"""Faults of the file that are named; where there are more, nobody mends them one by one."""
_SPACE = "damaged"
Sound = Callable[[Entry, bytes | None], bool]
"""Whether a unit is what was written; with it comes the card of its device as it is kept, if it is."""
_encode = msgspec.msgpack.Encoder().encode


class Scrubbed(Struct, frozen=True):
    """What a look through a store found."""

    units: int
    """How many were read."""
    damaged: dict[int, Damage]
    """By their positions."""
    problems: tuple[str, ...]
    """What SQLite says of its own file."""
    astray: int = 0
    """Units that belong to no chain: nobody can tell whether they are what was written."""

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.damaged and not self.problems and not self.astray


def scrub(path: Path, is_sound: Sound, progress: Callable[[int, int], None] | None = None) -> Scrubbed:
    """Read everything. `progress` is told how many units of how many; `StoreError` if it is no store."""
    with (
        told(path, "read"),
        closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as db,
    ):
        steps = migrations()
        if version_of(db, path) == len(steps):
            check_shape(db, path, steps)
        db.text_factory = bytes
        return _look(db, is_sound, progress)


def _look(db: sqlite3.Connection, is_sound: Sound, progress: Callable[[int, int], None] | None) -> Scrubbed:
    cards = dict(db.execute("SELECT key, value FROM cell WHERE space = 'card'").fetchall())
    said = [row[0].decode(errors="replace") for row in db.execute(f"PRAGMA integrity_check({_PROBLEMS})")]
    problems = [] if said == ["ok"] else said
    (count,) = db.execute("SELECT count(*) FROM unit").fetchone()
    damaged: dict[int, Damage] = {}
    units = astray = 0
    for position, entry in _entries(db):
        units += 1
        if entry is None:
            astray += 1
        elif not is_sound(entry, cards.get(entry.author + entry.device)):
            damaged[position] = Damage(
                entry.topic, entry.author, entry.device, entry.first, entry.count, entry.head
            )
        if progress is not None and (units % _PAGE == 0 or units == count):
            progress(units, count)
    return Scrubbed(units, damaged, tuple(problems), astray)


def _entries(db: sqlite3.Connection) -> Iterator[tuple[int, Entry | None]]:
    """Every unit, and None for one that belongs to no chain."""
    after = -1
    while rows := db.execute(_UNITS, (after, _PAGE)).fetchall():
        for position, *fields in rows:
            belongs = all(isinstance(owner, bytes) for owner in fields[:3])
            yield position, entry_of(*fields) if belongs else None
        after = rows[-1][0]


def note(path: Path, damaged: Mapping[int, Damage]) -> None:
    """Leave what is damaged for the next start, in place of what was noted before. No node may run."""
    with told(path, "written"), closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM cell WHERE space = ?", (_SPACE,))
        rows = [(_SPACE, at.to_bytes(8, "big"), _encode(each)) for at, each in damaged.items()]
        db.executemany("INSERT INTO cell (space, key, value) VALUES (?, ?, ?)", rows)
