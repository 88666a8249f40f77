"""Checks a whole store: reads every unit and every cell, and names the damaged ones.

It reads on a connection of its own and changes nothing, so a node may run meanwhile. `note` stores the
findings for the next start of the node, which fetches the damaged units again from other nodes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from linnet.core.stores import Damage, Entry
from linnet.store.faults import told
from linnet.store.reader import entry_of
from linnet.store.schema import NO_CELL, cell_checksum, check_shape, migrations, version_of
from linnet.store.schema import is_sound as is_sound_cell

_UNITS = """SELECT position, topic.topic, author, device, unit.first, count, unit.head, stored_at, raw
    FROM unit LEFT JOIN chain ON chain.id = unit.chain LEFT JOIN topic ON topic.id = unit.topic
    WHERE position > ? ORDER BY position LIMIT ?"""
_PAGE = 256
_PROBLEMS = 20
"""The most faults of the file that are named; where there are more, nobody mends them one by one."""
_SPACE = "damaged"
Sound = Callable[[Entry, bytes | None], bool]
"""Returns whether a unit is as it was written; the second argument is its device's stored card, if any."""
_encode = msgspec.msgpack.Encoder().encode


class Scrubbed(Struct, frozen=True):
    """The findings of a check."""

    units: int
    """The number of units read."""
    damaged: dict[int, Damage]
    """The damaged units, by their positions."""
    problems: tuple[str, ...]
    """The problems that SQLite reports of its own file."""
    astray: int = 0
    """The number of units without a chain: nobody can tell whether they are as they were written."""
    cells: int = 0
    """The number of values read; 0 for a file of older versions, which have no checksums."""
    damaged_cells: tuple[str, ...] = ()
    """The space of each damaged value."""

    @property
    def is_sound(self) -> bool:
        """Whether nothing is damaged."""
        return not self.damaged and not self.problems and not self.astray and not self.damaged_cells


def scrub(path: Path, is_sound: Sound, progress: Callable[[int, int], None] | None = None) -> Scrubbed:
    """Read everything. `progress` gets the units read and their total; `StoreError` if it is no store."""
    with (
        told(path, "read"),
        closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as db,
    ):
        steps = migrations()
        is_newest = version_of(db, path) == len(steps)
        if is_newest:
            check_shape(db, path, steps)
        db.text_factory = bytes
        cells, damaged = _look_at_cells(db) if is_newest else (0, [])
        found = _look_at_units(db, _cards(db, is_newest), is_sound, progress)
        return replace(found, cells=cells, damaged_cells=tuple(damaged))


def _look_at_cells(db: sqlite3.Connection) -> tuple[int, list[str]]:
    """Return the number of values, and the space of each that is damaged."""
    count, wrong = 0, []
    for space, key, value, checksum in db.execute("SELECT space, key, value, checksum FROM cell"):
        count += 1
        if checksum == NO_CELL or checksum != cell_checksum(space, key, value):
            wrong.append(space.decode(errors="replace") if isinstance(space, bytes) else "?")
    return count, wrong


def _cards(db: sqlite3.Connection, is_newest: bool) -> dict[bytes, bytes]:
    """Return the cards to check signatures by; a damaged card proves nothing about its device's units."""
    if not is_newest:
        return dict(db.execute("SELECT key, value FROM cell WHERE space = 'card'").fetchall())
    rows = db.execute("SELECT key, value, checksum FROM cell WHERE space = 'card'").fetchall()
    return {row[0]: row[1] for row in rows if is_sound_cell("card", *row)}


def _look_at_units(
    db: sqlite3.Connection,
    cards: Mapping[bytes, bytes],
    is_sound: Sound,
    progress: Callable[[int, int], None] | None,
) -> Scrubbed:
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
    """Yield every unit, and None for one without a chain."""
    after = -1
    while rows := db.execute(_UNITS, (after, _PAGE)).fetchall():
        for position, *fields in rows:
            belongs = all(isinstance(owner, bytes) for owner in fields[:3])
            yield position, entry_of(*fields) if belongs else None
        after = rows[-1][0]


def note(path: Path, damaged: Mapping[int, Damage]) -> None:
    """Store the damage for the next start, in place of earlier notes. No node may run."""
    with told(path, "written"), closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM cell WHERE space = ?", (_SPACE,))
        notes = [(at.to_bytes(8, "big"), _encode(each)) for at, each in damaged.items()]
        rows = [(_SPACE, *each) for each in notes]
        db.executemany("INSERT INTO cell (space, key, value) VALUES (?, ?, ?)", rows)
        if version_of(db, path) == len(migrations()):
            sums = [(cell_checksum(_SPACE.encode(), *each), _SPACE, each[0]) for each in notes]
            db.executemany("UPDATE cell SET checksum = ? WHERE space = ? AND key = ?", sums)
