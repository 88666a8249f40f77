"""Messages of any source into the tables ``messages``, ``quarantine`` and, if asked for, ``texts``."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from linnet.lab.errors import LabError
from linnet.lab.manifest import Origin, read_manifest
from linnet.lab.sources.choices import Choices
from linnet.lab.sources.formats import FORMATS, Format
from linnet.lab.sources.harvest import bad_rows, good_rows, harvest
from linnet.lab.sources.names import Names
from linnet.lab.sources.pieces import Piece, origins_of
from linnet.lab.sources.rows import LEFT_OUT, Bad, Entry, storable
from linnet.lab.stages import Made, Workshop
from linnet.lab.tables import MESSAGES, QUARANTINE, TEXTS, Table

EXCLUDED = LEFT_OUT + "its user is on the list"


class Prepared(Struct, frozen=True):
    """A source that was looked at and is worth the work."""

    format: str
    pieces: tuple[Piece, ...]
    origins: tuple[Origin, ...]
    choices: Choices


class MessageCounts(Struct, frozen=True):
    """What a source of messages came to."""

    format: str
    files: int
    messages: int
    kinds: dict[str, int]
    unknown_lengths: int
    """Texts whose length the source does not tell: deleted or encrypted ones."""
    chats: int
    users: int
    """Who said something; notices are not counted."""
    first_ms: int
    last_ms: int
    quarantined: dict[str, int]


def prepare(format: str, paths: Sequence[Path], choices: Choices) -> Prepared:
    """Look at the files, without Spark; `LabError` says what is wrong with them."""
    known = FORMATS[format]
    found = known.pieces(paths)
    origins = origins_of(found)
    return Prepared(format, tuple(known.inspect(found, choices)), tuple(origins), choices)


class Reader(Struct, frozen=True):
    """Reads pieces in tasks: names become hashes, texts their length."""

    format: str
    choices: Choices
    names: Names

    def __call__(self, piece: Piece) -> Iterator[Entry | Bad]:
        """The rows of one piece."""
        known: Format = FORMATS[self.format]
        keep, excluded = self.choices.keep_text, self.choices.excluded
        for found in known.read(piece, self.choices):
            if isinstance(found, Bad):
                yield found if keep else Bad(found.line, found.reason, "")
            elif found.user in excluded:
                yield Bad(found.line, EXCLUDED, "")
            else:
                chat = self.names.chat(found.chat, known.numbers_are_ids)
                user = self.names.user(found.user)
                text = storable(found.text) if keep else ""
                values = (chat, found.ts, user, found.chars, found.kind, found.granularity, text)
                yield Entry(found.line, values)


def by_chat(messages: DataFrame) -> DataFrame:
    """The same rows, each chat in one piece and in the order of time; as few files as the size allows."""
    return messages.repartition("chat").sortWithinPartitions("chat", "ts", "user", "kind", "chars")


def ingest_messages(workshop: Workshop, source: Prepared, names: Names) -> MessageCounts:
    """Make the tables and count them; `LabError` if nothing of the source could be used."""
    reader = Reader(source.format, source.choices, names)
    found = harvest(workshop.spark, source.pieces, reader, TEXTS.columns).persist()
    parameters = {
        "format": source.format,
        "salt": names.fingerprint,
        "keep_names": names.keep,
        **source.choices.parameters(),
    }

    def table(kind: Table, build: Callable[[], DataFrame]) -> Made:
        return workshop.stage(kind.name, kind, build, inputs=source.origins, parameters=parameters)

    try:
        made = table(MESSAGES, lambda: by_chat(good_rows(found, MESSAGES)))
        quarantine = table(QUARANTINE, lambda: bad_rows(found, source.format))
        if not source.choices.keep_text:
            # Texts that nobody asks for any more do not stay behind.
            shutil.rmtree(workshop.out / TEXTS.name, ignore_errors=True)
        else:
            table(TEXTS, lambda: by_chat(good_rows(found, TEXTS)))
    finally:
        found.unpersist()
    return _counted(source, made, quarantine)


def reasons(quarantine: DataFrame) -> dict[str, int]:
    """How many rows each reason has; the list of reasons is short."""
    rows = quarantine.groupBy("reason").count().orderBy(F.desc("count"), "reason").collect()
    return {row["reason"]: row["count"] for row in rows}


def _counted(source: Prepared, made: Made, quarantine: Made) -> MessageCounts:
    quarantined = reasons(quarantine.frame)
    if made.rows == 0:
        told = ", ".join(f"{reason} ({count})" for reason, count in quarantined.items())
        raise LabError(f"no message could be used: {told or 'there was none'}")
    kinds = made.frame.groupBy("kind").count().orderBy(F.desc("count"), "kind").collect()
    empty = (F.col("kind") == "text") & (F.col("chars") == 0)
    row = made.frame.agg(
        F.countDistinct("chat").alias("chats"),
        F.countDistinct(F.when(F.col("kind") != "notice", F.col("user"))).alias("users"),
        F.min("ts").alias("first"),
        F.max("ts").alias("last"),
        F.count_if(empty).alias("unknown"),
    ).first()
    assert row is not None  # noqa: S101 - for mypy: an aggregate has a row
    return MessageCounts(
        format=source.format,
        files=len(source.origins),
        messages=made.rows,
        kinds={each["kind"]: each["count"] for each in kinds},
        unknown_lengths=row["unknown"],
        chats=row["chats"],
        users=row["users"],
        first_ms=row["first"],
        last_ms=row["last"],
        quarantined=quarantined,
    )


def replaced(out: Path, table: Table, source: Prepared) -> bool:
    """Whether a table of another source stands where this one is going to be."""
    manifest = read_manifest(out / table.name)
    return manifest is not None and set(manifest.recipe.inputs) != set(source.origins)
