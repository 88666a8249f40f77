"""Runs of attacks as tasks of Spark: each gives one row of whole numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import pyarrow as pa  # type: ignore[import-untyped]
from msgspec import Struct
from pyspark.sql import DataFrame, SparkSession

from linnet.lab.studies.attacks.parameters import AttacksParameters
from linnet.lab.tables import Table
from linnet.sim.attacks.catalogue import ATTACKS
from linnet.sim.attacks.conduct import Conduct
from linnet.sim.attacks.figures import AttackFigures
from linnet.sim.attacks.silent_streams import StreamAttack, run_stream_attack

TROUBLE = "trouble"
"""Stands for the command where nobody attacks, and honest nodes are in trouble."""
TROUBLED_SHARE = 0.2
_TROUBLES = tuple(conduct for conduct in Conduct if not conduct.is_hostile)
_MILLION = 1_000_000

RUNS = Table(
    "attack_runs",
    1,
    "way STRING NOT NULL, attack STRING NOT NULL, joins STRING NOT NULL, share_ppm BIGINT NOT NULL, "
    "repeat INT NOT NULL, due BIGINT NOT NULL, delivered BIGINT NOT NULL, delivered_without BIGINT NOT NULL, "
    "worst_us BIGINT NOT NULL, told_us BIGINT, attacker_bytes BIGINT NOT NULL, honest_bytes BIGINT NOT NULL, "
    "blamed BIGINT NOT NULL",
    ("way", "attack", "joins", "share_ppm", "repeat"),
)
"""One run of one attack. Times are microseconds; `told_us` is null where nobody noticed.

`way` is the command that runs it, `joins` when attackers join, `blamed` how many honest nodes were taken for
attackers; it is counted where `way` is ``trouble``, and 0 elsewhere.
"""

_KINDS = {"STRING": pa.string(), "INT": pa.int32(), "BIGINT": pa.int64()}
ARROW = pa.schema([(column.split()[0], _KINDS[column.split()[1]]) for column in RUNS.columns.split(", ")])
"""The columns of `RUNS`, as tasks give them."""


class Case(Struct, frozen=True):
    """One run."""

    way: str
    attack: str
    joins: str
    share: float
    repeat: int
    seed: int


def cases_of(parameters: AttacksParameters) -> list[Case]:
    """Return every run: attacks with their shares, and honest nodes in trouble."""
    wanted = [each for each in ATTACKS if not parameters.names or each.name in parameters.names]
    cases = [
        Case(each.way, each.name, each.order, share, repeat, seed_of(parameters.seed, repeat))
        for each in wanted
        for share in each.shares
        for repeat in range(parameters.repeats)
    ]
    return cases + [
        Case(TROUBLE, conduct.value, "", TROUBLED_SHARE, repeat, seed_of(parameters.seed, repeat))
        for conduct in _TROUBLES
        for repeat in range(parameters.repeats)
    ]


def seed_of(seed: int, repeat: int) -> int:
    """Return the seed of a repeat: the same for all attacks, so that they hit the same networks."""
    digest = hashlib.sha256(f"linnet/lab/attacks/{seed}/{repeat}".encode()).digest()
    return int.from_bytes(digest[:4], "big")


def runs_of(spark: SparkSession, cases: Sequence[Case]) -> DataFrame:
    """Return what comes of each case. Grain: that of `RUNS`."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield to_arrow(cases[number], *measure(cases[number]))

    return spark.range(0, len(cases), 1, max(1, len(cases))).mapInArrow(work, RUNS.columns)


def measure(case: Case) -> tuple[AttackFigures, int]:
    """Run a case; return its figures, and how many honest nodes were blamed where nobody attacks."""
    if case.way == TROUBLE:
        honest = StreamAttack().honest
        scenario = StreamAttack(Conduct(case.attack), case.share, publishers=honest, seed=case.seed)
        report = run_stream_attack(scenario)
        return report.figures, report.honest_blamed
    key = (case.way, case.attack, case.joins)
    attack = next(each for each in ATTACKS if (each.way, each.name, each.order) == key)
    return attack.run(case.share, case.seed), 0


def to_arrow(case: Case, figures: AttackFigures, blamed: int) -> pa.RecordBatch:
    """Return the row of one case."""
    told = figures.told_after_seconds
    row = (
        case.way,
        case.attack,
        case.joins,
        round(case.share * _MILLION),
        case.repeat,
        figures.honest_due,
        figures.delivered,
        figures.delivered_without,
        round(figures.worst_seconds * _MILLION),
        None if told is None else round(told * _MILLION),
        figures.attacker_bytes,
        figures.honest_bytes,
        blamed,
    )
    arrays = [pa.array([value], field.type) for value, field in zip(row, ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW)
