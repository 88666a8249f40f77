"""The membership test over a million changes: tests a second and memory, beside the same question in SQL."""

from __future__ import annotations

import hashlib
import itertools
import sqlite3
from collections.abc import Iterator
from random import Random
from struct import Struct as Packing

from bench.intersections import rate
from bench.results import Measure, Plan
from bench.rooms import resident_mib
from linnet.core.ids import AuthorId, TopicId
from linnet.core.stores import CellDamage
from linnet.places.channel.membership import Membership
from linnet.places.deed import Policy

TESTS = "membership: tests"
QUERY = "membership: SQLite query, beside"
MEMORY = "membership: memory"
ROWS = 1_000_000
_PLACE = TopicId(b"place..." * 4)
_row = Packing(">QQQ?")
_ASKED = 4096
_SQL = "SELECT joins FROM changes WHERE nym = ? AND since <= ? ORDER BY announced_at DESC LIMIT 1"
"""The question of the document itself (Toth 2013, section 5.3)."""

Change = tuple[bytes, int, int, int, bool]
"""Nym, announced at, effective since, generation, joins."""


def nyms_of(rows: int) -> int:
    """About how many nyms so many changes are of: 2.5 each."""
    return rows * 2 // 5


def nym_of(number: int, rows: int) -> bytes:
    """A nym; evenly spread, and in the order of their numbers, so that nothing has to be sorted here."""
    first = (number * (2**64 // (nyms_of(rows) + 4))).to_bytes(8, "big")
    return first + hashlib.sha256(first).digest()[8:]


def changes(rows: int) -> Iterator[Change]:
    """So many changes, by nym: who came, some who left, some who came again."""
    generation, announced = 0, 0
    for number in itertools.count():
        nym = nym_of(number, rows)
        for turn in range(1 + number % 4):
            if announced == rows:
                return
            announced += 1
            joins = turn % 2 == 0
            yield nym, announced, announced if joins else 0, generation, joins
            generation += not joins


class ReadOnly:
    """Cells that hold nothing in memory: what is measured is what membership itself keeps."""

    def __init__(self, rows: int) -> None:
        self._rows = rows

    def get(self, space: str, key: bytes) -> bytes | None:
        """Nothing was settled."""
        return None

    def put(self, space: str, key: bytes, value: bytes) -> None:
        """Nobody writes."""
        raise AssertionError("a test writes nothing")

    def delete(self, space: str, key: bytes) -> None:
        """Nobody writes."""
        raise AssertionError("a test writes nothing")

    def scan(self, space: str) -> Iterator[tuple[bytes, bytes]]:
        """All changes, as they are kept."""
        for nym, announced, since, generation, joins in changes(self._rows):
            yield nym + announced.to_bytes(8, "big"), _row.pack(announced, since, generation, joins)

    def take_damage(self) -> list[CellDamage]:
        """Nothing is damaged."""
        return []


def in_sql(rows: int) -> sqlite3.Connection:
    """The same changes as a table with its index."""
    made = sqlite3.connect(":memory:")
    made.execute(
        "CREATE TABLE changes (nym BLOB, announced_at INT, since INT, generation INT, joins INT, "
        "PRIMARY KEY (nym, announced_at)) WITHOUT ROWID"
    )
    made.executemany("INSERT INTO changes VALUES (?, ?, ?, ?, ?)", changes(rows))
    return made


def questions(rows: int) -> list[tuple[AuthorId, int]]:
    """Nyms and messages in no order."""
    luck, nyms = Random(1), nyms_of(rows)
    return [(AuthorId(nym_of(luck.randrange(nyms), rows)), luck.randint(1, rows)) for _ in range(_ASKED)]


def measure(plan: Plan, section: str) -> list[Measure]:
    """All of it."""
    rows = plan.count(ROWS, 2_000)
    before = resident_mib()
    membership = Membership(_PLACE, ReadOnly(rows), Policy.PUBLIC)
    memory = resident_mib() - before
    table, asked = in_sql(rows), questions(rows)
    known = membership.known_generation

    def ours() -> list[bool]:
        return [membership.test(nym, message, known).value == "yes" for nym, message in asked]

    def theirs() -> list[bool]:
        found = (table.execute(_SQL, (nym, message)).fetchone() for nym, message in asked)
        return [row is not None and bool(row[0]) for row in found]

    if ours() != theirs():
        raise AssertionError("both ways answer differently")
    runs: dict[str, list[float]] = {TESTS: [], QUERY: []}
    for _ in range(plan.runs):
        runs[TESTS].append(_ASKED * rate(ours, plan.seconds))
        runs[QUERY].append(_ASKED * rate(theirs, plan.seconds))
    table.close()
    note = f"{rows:,} changes, {_ASKED:,} random questions"
    told = [Measure(section, name, "1/s", tuple(found), note) for name, found in runs.items()]
    return [*told, Measure(section, MEMORY, "MiB", (memory,), f"{rows:,} changes, packed")]
