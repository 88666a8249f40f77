"""Operations as tasks of Spark: what is counted in rows of `GROUP_COUNTS`, what is timed in `GROUP_TIMES`."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

from linnet.lab.studies.groups import probes
from linnet.lab.studies.groups.circle import PARTS, Circle, Sent
from linnet.lab.studies.groups.operations import Course, Stage, devices_of
from linnet.lab.studies.groups.tallying import OPERATIONS, TalliedCircle
from linnet.lab.studies.groups.workload import CATCH_UP, FIRST_UPDATE, FUZZ, STATE, VIEW, Case, cases_frame
from linnet.lab.tables import GROUP_COUNTS, GROUP_TIMES, Table

ALL, SENDER, RECIPIENT, NEWCOMER, MACHINE = "all", "sender", "recipient", "newcomer", "machine"

Row: TypeAlias = tuple[object, ...]
_NAMED = [
    ("operation", pa.string()),
    ("acks", pa.string()),
    ("batch", pa.int32()),
    ("size", pa.int32()),
    ("repeat", pa.int32()),
    ("role", pa.string()),
]
_COUNTS = pa.schema([*_NAMED, ("measure", pa.string()), ("count", pa.int64())])
_TIMES = pa.schema(
    [*_NAMED, ("part", pa.string()), ("clients", pa.int32()), ("events", pa.int64()), ("value", pa.int64())]
)


def counted(spark: SparkSession, cases: Sequence[Case]) -> DataFrame:
    """Bytes and calls of these cases. Grain: that of `GROUP_COUNTS`."""
    return _tasks(spark, cases, GROUP_COUNTS, _COUNTS, count)


def timed(spark: SparkSession, cases: Sequence[Case]) -> DataFrame:
    """Processor time of these cases. Grain: that of `GROUP_TIMES`."""
    return _tasks(spark, cases, GROUP_TIMES, _TIMES, measure)


def _tasks(
    spark: SparkSession,
    cases: Sequence[Case],
    table: Table,
    schema: pa.Schema,
    work: Callable[[Case], list[Row]],
) -> DataFrame:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                case = Case(**row)
                named = (case.operation, case.acks, case.batch, case.size, case.repeat)
                yield to_arrow([(*named, *found) for found in work(case)], schema)

    return cases_frame(spark, cases).mapInArrow(task, table.columns)


def to_arrow(rows: Sequence[Row], schema: pa.Schema) -> pa.RecordBatch:
    """Rows as a batch."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def count(case: Case) -> list[Row]:
    """Role, measure and count of one case."""
    if case.operation == STATE:
        return [(RECIPIENT, "state_bytes", probes.state_bytes(case))]
    sender = 1 if case.operation == FIRST_UPDATE else 0
    watched = {SENDER: sender, RECIPIENT: 0 if sender else 1, NEWCOMER: case.size}
    circle = TalliedCircle(devices_of(case), case.seed, watched.values())
    course = Stage(circle, case).run()
    rows: list[Row] = [(ALL, name, value) for name, value in _sent(course).items()]
    rows.append((ALL, "weak", sum(party.weak for party in circle.parties)))
    rows.append((ALL, "bundle_bytes", circle.bundle_bytes))
    roles = [SENDER, RECIPIENT, *([] if course.newcomer is None else [NEWCOMER])]
    for role in roles:
        tally = circle.tallies[watched[role]]
        rows += [(role, name, tally[name]) for name in OPERATIONS]
    return rows


def _sent(course: Course) -> dict[str, int]:
    def total(sent: Sequence[Sent]) -> tuple[int, int]:
        return sum(each.body for each in sent), sum(len(each.raw) for each in sent)

    body, wire = total((*course.operations, *course.keys, *course.acks))
    return {
        "events": len(course.operations) + len(course.keys) + len(course.acks),
        "body_bytes": body,
        "wire_bytes": wire,
        "operation_bytes": total((*course.operations, *course.keys))[0],
        "prekey_bytes": total(course.keys)[0],
        "ack_bytes": total(course.acks)[0],
    }


def measure(case: Case) -> list[Row]:
    """Role, part, clients, events and nanoseconds of one case; as in `timeit` no garbage is collected."""
    gc.collect()
    gc.disable()
    try:
        rows = _measured(case)
    finally:
        gc.enable()
    load = round(1000 * os.getloadavg()[0])
    return [*rows, (MACHINE, "load", 1, 1, load)]


def _measured(case: Case) -> list[Row]:
    if case.operation == FUZZ:
        return [(ALL, "run", 1, 1, probes.fuzz(case))]
    if case.operation == VIEW:
        times = probes.view_times(case)
        return [(ALL, part, 1, probes.LOOKS, value) for part, value in times.items()]
    if case.operation == CATCH_UP:
        absence = probes.Absence(case)
        absence.run()
        absence.come_back()
        return _spent(absence.circle, RECIPIENT, [absence.returning])
    circle = Circle(devices_of(case), case.seed)
    course = Stage(circle, case).run()
    rows = _spent(circle, SENDER, [course.sender]) + _spent(circle, RECIPIENT, course.recipients)
    return rows if course.newcomer is None else rows + _spent(circle, NEWCOMER, [course.newcomer])


def _spent(circle: Circle, role: str, places: Sequence[int]) -> list[Row]:
    parties = [circle.parties[place] for place in places]
    return [
        (
            role,
            part,
            len(parties),
            sum(party.events[part] for party in parties),
            sum(party.spent[part] for party in parties),
        )
        for part in PARTS
    ]
