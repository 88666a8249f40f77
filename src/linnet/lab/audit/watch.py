"""A watch over the traces of running nodes: Structured Streaming over the cuts of their files.

Each batch takes the state of the batch before and leaves its own, in a folder that gets its name when it
is whole. Spark repeats a batch that it did not finish, with the same lines and the same number; it then finds
the same state before it and leaves the same one behind. So nothing is lost or counted twice, whenever the
watch is killed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from linnet.lab.audit import watch_state as state
from linnet.lab.audit.reading import good_rows, parsed
from linnet.lab.audit.tailing import PREFIX, SUFFIX, Tailer
from linnet.lab.audit.watch_view import View, view_of
from linnet.lab.errors import LabError
from linnet.lab.stages import schema_of
from linnet.lab.tables import QUARANTINE, WATCH_NODES, WATCH_OPEN, WATCH_READERS, WATCH_SUMS, Table

LATENESS_MS = 60_000
FILES_AT_ONCE = 16
_TABLES = {"open": WATCH_OPEN, "sums": WATCH_SUMS, "readers": WATCH_READERS, "nodes": WATCH_NODES}
_KEPT_STATES = 3
_SHOWN = 200


class Mark(Struct, frozen=True):
    """What a state says of itself."""

    batch: int
    watermark_us: int
    cut: int
    """The newest cut that it has taken in."""


class Watch:
    """One watch, in a folder of its own: cuts, states, and Spark's own checkpoint."""

    def __init__(self, spark: SparkSession, folder: Path, out: Path, lateness_ms: int = LATENESS_MS) -> None:
        if not folder.is_dir():
            raise LabError(f"{folder} is no folder")
        self._spark = spark
        self._out = out
        self._lateness_ms = lateness_ms
        self._states = out / "states"
        self._states.mkdir(parents=True, exist_ok=True)
        self.tailer = Tailer(folder, out / "spool", out)
        self._seen: tuple[Mark, View] | None = None
        self.after_state: Callable[[int], None] = lambda batch: None
        """Called when the state of a batch stands, and Spark has not been told yet."""

    def start(self, once: bool, seconds: float = 2.0) -> StreamingQuery:
        """Take in what was cut: all that there is and then end, or again and again."""
        lines = (
            self._spark.readStream.schema("value string")
            .option("lineSep", "\n")
            .option("maxFilesPerTrigger", FILES_AT_ONCE)
            .option("pathGlobFilter", f"*{SUFFIX}")
            .text(str(self._out / "spool"))
        )
        writer = lines.writeStream.foreachBatch(self._take).option(
            "checkpointLocation", str(self._out / "checkpoint")
        )
        if once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{seconds} seconds").start()

    def look(self) -> View:
        """What is known now, of earlier runs too; the same object as before if nothing new is."""
        mark = self._last(None)
        if self._seen is None or self._seen[0] != mark:
            self._seen = (mark, view_of(self._known(mark), mark.watermark_us))
        return self._seen[1]

    def _take(self, lines: DataFrame, batch: int) -> None:
        mark = self._last(batch)
        self.tailer.forget(mark.cut)  # Spark begins a batch when the one before is finished for good
        known = self._known(mark)
        cut = _cut_lines(lines).cache()
        newest, bad = _counted(cut)
        rows = state.marked(good_rows(cut), mark.watermark_us).cache()
        nodes = state.nodes_after(known.nodes, rows).cache()
        watermark = max(mark.watermark_us, self._watermark(nodes))
        readers = state.readers_after(known.readers, rows)
        opened = state.open_after(known.open, rows).cache()
        settled = state.events_of(opened).where(state.is_settled(watermark)).cache()
        sums = known.sums.unionByName(state.sums_of_rows(rows)).unionByName(_bad(cut))
        sums = sums.unionByName(state.sums_of_events(settled, readers, final=True))
        gone = settled.select("topic", "device", "seq")
        left = opened.join(gone, ["topic", "device", "seq"], "left_anti")
        if bad:
            self._quarantine(cut, batch)
        self._write(
            Mark(batch, watermark, max(mark.cut, newest)),
            {"open": left, "sums": state.added(sums), "readers": readers, "nodes": nodes},
        )
        for frame in (settled, opened, nodes, rows, cut):
            frame.unpersist()
        self.after_state(batch)

    def _watermark(self, nodes: DataFrame) -> int:
        """By the second newest clock: one node alone, with a clock that is ahead, does not hasten it."""
        newest = [row.last_us for row in nodes.orderBy(F.desc("last_us")).limit(2).collect()]
        return int(newest[-1]) - self._lateness_ms * 1000 if newest else 0

    def _quarantine(self, cut: DataFrame, batch: int) -> None:
        bad = cut.where(F.col("reason").isNotNull())
        places = cut.where(F.col("places").isNotNull()).select(
            "spool", F.posexplode("places").alias("number", "place")
        )
        told = bad.join(F.broadcast(places), ["spool", "number"], "left").select(
            F.lit("trace").alias("source"),
            F.coalesce("place.path", F.lit("")).alias("file"),
            F.col("offset").alias("line"),
            "reason",
            F.substring("line", 1, _SHOWN).alias("content"),
        )
        columns = schema_of(QUARANTINE).fieldNames()
        folder = self._out / "quarantine" / f"batch={batch}"
        told.select(*columns).coalesce(1).write.mode("overwrite").parquet(str(folder))

    # States.

    def _known(self, mark: Mark) -> state.Known:
        folder = self._states / str(mark.batch)
        return state.Known(**{name: self._read(folder / name, table) for name, table in _TABLES.items()})

    def _read(self, folder: Path, table: Table) -> DataFrame:
        if not folder.exists():
            return self._spark.createDataFrame([], schema_of(table))
        return self._spark.read.schema(schema_of(table)).parquet(str(folder))

    def _last(self, before: int | None) -> Mark:
        """The newest state, of those before a batch if one is given."""
        numbers = sorted(int(path.name) for path in self._states.iterdir() if path.name.isdecimal())
        found = [number for number in numbers if before is None or number < before]
        if not found:
            return Mark(-1, 0, 0)
        path = self._states / str(found[-1]) / "mark.json"
        try:
            return msgspec.json.decode(path.read_bytes(), type=Mark)
        except (OSError, msgspec.DecodeError) as error:
            raise LabError(f"{path} cannot be read: remove {self._out} to begin anew") from error

    def _write(self, mark: Mark, tables: dict[str, DataFrame]) -> None:
        fresh = self._states / f".{mark.batch}"
        shutil.rmtree(fresh, ignore_errors=True)
        for name, frame in tables.items():
            columns = schema_of(_TABLES[name]).fieldNames()
            frame.select(*columns).write.parquet(str(fresh / name))
        (fresh / "mark.json").write_bytes(msgspec.json.encode(mark))
        place = self._states / str(mark.batch)
        shutil.rmtree(place, ignore_errors=True)
        os.rename(fresh, place)
        for path in self._states.iterdir():
            if path.name.isdecimal() and int(path.name) <= mark.batch - _KEPT_STATES:
                shutil.rmtree(path)


def _cut_lines(lines: DataFrame) -> DataFrame:
    """Lines of cuts, parsed; the first line of each cut tells which file has which number."""
    value = F.col("value")
    is_first = value.startswith(PREFIX)
    parts = F.split(value, "\t", 3)
    places = F.from_json(F.substring(value, 2, 1 << 30), "places array<struct<path: string>>")["places"]
    cut = lines.select(
        F.input_file_name().alias("spool"),
        F.when(is_first, places).alias("places"),
        F.when(~is_first, parts[0].cast("int")).alias("number"),
        F.when(~is_first, parts[1].cast("bigint")).alias("offset"),
        F.when(is_first, F.lit('{"linnet_trace":1}')).otherwise(parts[2]).alias("line"),
    )
    return parsed(cut)


def _counted(cut: DataFrame) -> tuple[int, int]:
    """The newest cut of a batch, and how many lines are bad."""
    number = F.regexp_extract("spool", f"([0-9]+)\\{SUFFIX}$", 1).cast("int")
    found = cut.agg(F.max(number).alias("newest"), F.count("reason").alias("bad")).first()
    return (0, 0) if found is None else (found.newest or 0, found.bad)


def _bad(cut: DataFrame) -> DataFrame:
    return cut.where(F.col("reason").isNotNull()).select(
        F.lit(None).cast("binary").alias("topic"),
        F.lit(state.BAD).alias("name"),
        F.col("reason").alias("detail"),
        F.lit(0).alias("bin"),
        F.lit(1).cast("bigint").alias("value"),
    )
