"""What is around messages: latencies, sessions and subscriptions, each into its own table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from linnet.lab.errors import LabError
from linnet.lab.sources import availability, latency, subscriptions
from linnet.lab.sources.choices import Choices
from linnet.lab.sources.harvest import bad_rows, good_rows, harvest, without_repeats
from linnet.lab.sources.messages import Prepared, reasons
from linnet.lab.sources.names import Names
from linnet.lab.sources.pieces import Piece, clean_lines, opened, origins_of, plain_pieces
from linnet.lab.sources.rows import Bad, Entry, Numbered
from linnet.lab.stages import Made, Workshop
from linnet.lab.tables import LATENCIES, QUARANTINE, SESSIONS, SUBSCRIPTIONS, Table


class Surrounding(Struct, frozen=True):
    """A kind of source that is no chat."""

    name: str
    table: Table
    key: tuple[str, ...]
    """Columns whose values may come from one line only."""
    again: str
    """Why a later line with the same key is not used."""
    inspect: Callable[[Sequence[Piece], Choices], list[Piece]]
    parse: Callable[[Iterator[Numbered], Piece, Choices, Names], Iterator[Entry | Bad]]
    counted: dict[str, str]
    """What is counted apart, and by which column."""


SURROUNDINGS = {
    each.name: each
    for each in (
        Surrounding(
            "latency",
            LATENCIES,
            LATENCIES.grain,
            "the same pair came before",
            latency.inspect,
            latency.parse,
            {"origins": "origin", "targets": "target"},
        ),
        Surrounding(
            "availability",
            SESSIONS,
            ("device",),
            "the same device and week came before",
            availability.inspect,
            availability.parse,
            {"devices": "device"},
        ),
        Surrounding(
            "subscriptions",
            SUBSCRIPTIONS,
            SUBSCRIPTIONS.grain,
            subscriptions.REPEATED,
            subscriptions.inspect,
            subscriptions.parse,
            {"subscribers": "subscriber", "topics": "topic"},
        ),
    )
}


class TableCounts(Struct, frozen=True):
    """What a source came to."""

    format: str
    table: str
    files: int
    rows: int
    distinct: dict[str, int]
    quarantined: dict[str, int]


def prepare_surrounding(format: str, paths: Sequence[Path], choices: Choices) -> Prepared:
    """Look at the files, without Spark; `LabError` says what is wrong with them."""
    found = plain_pieces(paths)
    origins = origins_of(found)
    return Prepared(format, tuple(SURROUNDINGS[format].inspect(found, choices)), tuple(origins), choices)


class SurroundingReader(Struct, frozen=True):
    """Reads pieces in tasks."""

    format: str
    choices: Choices
    names: Names

    def __call__(self, piece: Piece) -> Iterator[Entry | Bad]:
        """The rows of one piece."""
        faults: list[Bad] = []
        with opened(piece) as file:
            lines = clean_lines(file, faults.append)
            for found in SURROUNDINGS[self.format].parse(lines, piece, self.choices, self.names):
                yield (
                    found
                    if self.choices.keep_text or isinstance(found, Entry)
                    else found._replace(content="")
                )
        yield from (fault._replace(content="") for fault in faults)


def ingest_surrounding(workshop: Workshop, source: Prepared, names: Names) -> TableCounts:
    """Make the table and its quarantine, and count them; `LabError` if nothing could be used."""
    known = SURROUNDINGS[source.format]
    table = known.table
    reader = SurroundingReader(source.format, source.choices, names)
    rows = harvest(workshop.spark, source.pieces, reader, table.columns).persist()
    found = without_repeats(rows, known.key, known.again)
    parameters = {
        "format": source.format,
        "salt": names.fingerprint,
        "keep_names": names.keep,
        **source.choices.parameters(),
    }

    def stage(name: str, kind: Table, build: Callable[[], DataFrame]) -> Made:
        return workshop.stage(name, kind, build, inputs=source.origins, parameters=parameters)

    try:
        made = stage(table.name, table, lambda: _ordered(good_rows(found, table), table))
        apart = f"{QUARANTINE.name}_{table.name}"
        quarantine = stage(apart, QUARANTINE, lambda: bad_rows(found, source.format))
    finally:
        rows.unpersist()
    return _counted(source, known, made, reasons(quarantine.frame))


def _ordered(rows: DataFrame, table: Table) -> DataFrame:
    return rows.repartition(table.grain[0]).sortWithinPartitions(*table.grain)


def _counted(source: Prepared, known: Surrounding, made: Made, quarantined: dict[str, int]) -> TableCounts:
    if made.rows == 0:
        told = ", ".join(f"{reason} ({count})" for reason, count in quarantined.items())
        raise LabError(f"no row could be used: {told or 'there was none'}")
    columns = [F.countDistinct(column).alias(label) for label, column in known.counted.items()]
    row = made.frame.agg(*columns).first()
    assert row is not None  # noqa: S101 - for mypy: an aggregate has a row
    return TableCounts(
        format=source.format,
        table=known.table.name,
        files=len(source.origins),
        rows=made.rows,
        distinct=dict(row.asDict()),
        quarantined=quarantined,
    )
