"""Which operations are run: each is a row, and rows that take longest come first."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import astuple
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from linnet.lab.studies.groups.parameters import GroupsParameters

CREATE, ADD, REMOVE, UPDATE, MESSAGE = "create", "add", "remove", "update", "message"
PUBLISHED = (CREATE, ADD, REMOVE, UPDATE, MESSAGE)
"""The operations of the published benchmark."""
FIRST_UPDATE = "first-update"
"""An update of a member who has sent nothing to the others yet, so that each of its channels begins."""
UPDATES = "updates"
"""Several updates in a row."""
STATE, CATCH_UP, VIEW, FUZZ = "state", "catch-up", "view", "fuzz"
SCALED = "scaled-update"
"""An update, heard by a few: how the work of single devices grows."""

SINGLE, MULTI = "single", "multi"
"""Acknowledgements one by one, or all that are owed in one event."""

LISTENERS = 4
"""Members that hear all acknowledgements where not all do."""
PENDING = (0, 1, 2, 4, 8)
"""Updates that nobody has acknowledged, for the size of a state."""
COUNTED = 2
"""Repeats that are counted; bytes do not depend on the seed, and a check says so."""
SAID = 32
"""Messages in a row that are timed: one alone takes less than a clock can tell well."""
VIEWED = 100
"""Membership operations behind the view that is timed."""


class Case(Struct, frozen=True):
    """One operation in one group."""

    operation: str
    acks: str
    batch: int
    """Operations in a row, or what else of the case is counted."""
    size: int
    repeat: int
    seed: int
    listeners: int = 0
    """Members that hear all acknowledgements; 0: everybody."""


COLUMNS = (
    "operation STRING NOT NULL, acks STRING NOT NULL, batch INT NOT NULL, size INT NOT NULL, "
    "repeat INT NOT NULL, seed BIGINT NOT NULL, listeners INT NOT NULL"
)
_KINDS = [column.split()[1] for column in COLUMNS.split(", ")]


def seed_of(seed: int, size: int, repeat: int) -> int:
    """A seed of its own for each repeat of each size; operations share it, and so devices and keys."""
    digest = hashlib.sha256(f"linnet/lab/groups/{seed}/{size}/{repeat}".encode()).digest()
    return int.from_bytes(digest[:4], "big")


def counted_cases(parameters: GroupsParameters) -> list[Case]:
    """Everything of which bytes and calls are counted: one member and the newcomer hear all."""
    operations = [(name, SINGLE, 1) for name in (*PUBLISHED, FIRST_UPDATE)]
    operations += [(UPDATES, acks, parameters.batch) for acks in (SINGLE, MULTI)]
    cases = _cases(parameters, operations, parameters.ordered, COUNTED, 1)
    states = [(STATE, SINGLE, pending) for pending in PENDING]
    return cases + _cases(parameters, states, (parameters.largest,), 1, 1)


def timed_cases(parameters: GroupsParameters) -> list[Case]:
    """Everything that is timed as in the published benchmark: all members do all of it."""
    operations = [(name, SINGLE, SAID if name == MESSAGE else 1) for name in PUBLISHED]
    return _cases(parameters, operations, parameters.ordered, parameters.repeats, 0)


def scaled_cases(parameters: GroupsParameters) -> list[Case]:
    """Updates in groups up to a larger size, heard by a few."""
    operations = [(SCALED, SINGLE, 1)]
    return _cases(parameters, operations, parameters.scaled, parameters.repeats, LISTENERS)


def beside_cases(parameters: GroupsParameters) -> list[Case]:
    """A member's return, batches, views, and random groups."""
    size, repeats = parameters.largest, parameters.repeats
    batches = [(UPDATES, acks, parameters.batch) for acks in (SINGLE, MULTI)]
    cases = _cases(parameters, batches, (size,), repeats, LISTENERS)
    if parameters.missed:
        missed = [(CATCH_UP, acks, parameters.missed) for acks in (SINGLE, MULTI)]
        cases = _cases(parameters, missed, (size,), 1, 1) + cases
    cases += _cases(parameters, [(VIEW, SINGLE, VIEWED)], (size,), repeats, 1)
    return cases + _cases(parameters, [(FUZZ, SINGLE, parameters.fuzz_ops)], (6,), parameters.fuzz, 0)


def _cases(
    parameters: GroupsParameters,
    operations: Sequence[tuple[str, str, int]],
    sizes: Sequence[int],
    repeats: int,
    listeners: int,
) -> list[Case]:
    return [
        Case(name, acks, batch, size, repeat, seed_of(parameters.seed, size, repeat), listeners)
        for size in sorted(sizes, reverse=True)
        for name, acks, batch in operations
        for repeat in range(repeats)
    ]


def cases_frame(spark: SparkSession, cases: Sequence[Case]) -> DataFrame:
    """Cases as rows, each a task of its own, in their order. Grain: one row per case."""
    rows = F.array(*(_row(case) for case in cases))
    numbered = spark.range(0, len(cases), 1, len(cases))
    return numbered.select(F.element_at(rows, (F.col("id") + 1).cast("int")).alias("case")).select("case.*")


def _row(case: Case) -> Column:
    values = zip(Case.__struct_fields__, _KINDS, astuple(case), strict=True)
    return F.struct(*(F.lit(value).cast(kind).alias(name) for name, kind, value in values))
