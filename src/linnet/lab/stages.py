"""Stages: each makes one table, once.

A stage writes beside its place and is renamed when it is whole, manifest included, so that a table
that has its name is finished. A study that was cut short finds what stands and goes on after it; a
stage whose recipe has not changed does nothing, but see that what stands is what was written.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import StructType

from linnet.lab.contents import check_grain, check_nulls, data_files, parts_of
from linnet.lab.errors import LabError
from linnet.lab.manifest import (
    FORMAT,
    Manifest,
    Origin,
    Parameter,
    Recipe,
    file_input,
    read_manifest,
    write_manifest,
)
from linnet.lab.peak import PeakMemory
from linnet.lab.report.parts import StageCost
from linnet.lab.spark.shipping import code_version
from linnet.lab.tables import Table

__all__ = ["Made", "Workshop", "file_input", "open_table"]

_UNFINISHED = ".unfinished"


class Made(Struct, frozen=True):
    """A table that stands."""

    frame: DataFrame
    manifest: Manifest

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return self.manifest.rows

    @property
    def digest(self) -> str:
        """The name of its content."""
        return self.manifest.digest

    @property
    def origin(self) -> Origin:
        """This table as an input of another."""
        return Origin(self.manifest.recipe.table, self.manifest.digest)


def schema_of(table: Table) -> StructType:
    """The columns of a table, as Spark has them."""
    found = StructType.fromDDL(table.columns)
    if not isinstance(found, StructType):
        raise TypeError(f"the columns of {table.name} are no structure")
    return found


def open_table(spark: SparkSession, folder: Path, table: Table) -> Made:
    """A table that an earlier command made; `LabError` says what is wrong with it."""
    if not folder.is_dir():
        raise LabError(f"there is no table {table.name} in {folder.parent}: `linnet lab ingest` makes one")
    manifest = read_manifest(folder)
    if manifest is None:
        raise LabError(f"{folder} has no manifest that can be read: make the table again")
    recipe = manifest.recipe
    if (recipe.table, recipe.version) != (table.name, table.version):
        found = f"{recipe.table} of version {recipe.version}"
        raise LabError(f"{folder} holds {found}, not {table.name} of version {table.version}: make it again")
    check_unchanged(spark, folder, table, manifest)
    if manifest.rows == 0:
        raise LabError(f"the table {table.name} in {folder.parent} is empty")
    return _read(spark, folder, table, manifest)


def _read(spark: SparkSession, folder: Path, table: Table, manifest: Manifest) -> Made:
    return Made(spark.read.schema(schema_of(table)).parquet(str(folder)), manifest)


def check_unchanged(spark: SparkSession, folder: Path, table: Table, manifest: Manifest) -> None:
    """`LabError` unless a table has the rows that its manifest says, and its files the bytes."""
    again = "bring its files back, or remove the folder and make the table again"
    parts = parts_of(folder)
    rows = sum(part.rows for part in parts)
    if rows != manifest.rows:
        raise LabError(
            f"the table {table.name} in {folder} has {rows:,} rows, and {manifest.rows:,} were written: "
            f"{again}"
        )
    if not manifest.parts:
        check_rows(spark, folder, table, rows)
    elif parts != manifest.parts:
        (first, *_) = sorted(set(parts) ^ set(manifest.parts))
        raise LabError(
            f"the table {table.name} in {folder} is not what was written: {first.name} has changed; {again}"
        )


def check_rows(spark: SparkSession, folder: Path, table: Table, rows: int) -> None:
    """`LabError` unless every row has what it must, and a name of its own."""

    def repeated() -> Row | None:
        found = spark.read.schema(schema_of(table)).parquet(str(folder)).groupBy(*table.grain).count()
        return found.where("count > 1").select(*table.grain).first()

    check_nulls(data_files(folder), table, required_of(table))
    check_grain(folder, table, rows, repeated)


def required_of(table: Table) -> list[str]:
    """The columns of which every row must have a value."""
    return [field.name for field in schema_of(table) if not field.nullable]


class Workshop:
    """Makes the tables of one job in one folder."""

    def __init__(
        self, spark: SparkSession, out: Path, tell: Callable[[str], None] = lambda name: None
    ) -> None:
        self.spark = spark
        self.out = out
        self.tell = tell
        self._costs: dict[str, StageCost] = {}
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LabError(f"{out} cannot be written: {error.strerror}") from error

    @property
    def costs(self) -> tuple[StageCost, ...]:
        """What each stage took, in the order in which they were asked for."""
        return tuple(self._costs.values())

    def stage(
        self,
        name: str,
        table: Table,
        build: Callable[[], DataFrame],
        *,
        inputs: Sequence[Made | Origin] = (),
        parameters: Mapping[str, Parameter] | None = None,
        seed: int | None = None,
    ) -> Made:
        """The table of this name: the one that stands if it was made by the same recipe, else a new one."""
        origins = tuple(each.origin if isinstance(each, Made) else each for each in inputs)
        recipe = Recipe(table.name, table.version, origins, dict(parameters or {}), seed, code_version())
        folder = self.out / name
        manifest = read_manifest(folder)
        reused = manifest is not None and manifest.digest == recipe.digest()
        if manifest is None or not reused:
            self.tell(name)
            manifest = self._make(folder, table, build, recipe)
        else:
            check_unchanged(self.spark, folder, table, manifest)
        self._costs[name] = StageCost(
            name=name,
            rows=manifest.rows,
            seconds=manifest.seconds,
            peak_bytes=manifest.peak_bytes,
            reused=reused,
        )
        return _read(self.spark, folder, table, manifest)

    def _make(self, folder: Path, table: Table, build: Callable[[], DataFrame], recipe: Recipe) -> Manifest:
        fresh = folder.with_name(f".{folder.name}{_UNFINISHED}")
        shutil.rmtree(fresh, ignore_errors=True)
        began = time.perf_counter()
        with PeakMemory() as peak:
            _conforming(build(), table).write.parquet(str(fresh))
            parts = parts_of(fresh)
            rows = sum(part.rows for part in parts)
            check_rows(self.spark, fresh, table, rows)
        seconds = time.perf_counter() - began
        manifest = Manifest(FORMAT, recipe, recipe.digest(), rows, seconds, peak.bytes, parts)
        write_manifest(fresh, manifest)
        shutil.rmtree(folder, ignore_errors=True)
        os.rename(fresh, folder)
        return manifest


def _conforming(frame: DataFrame, table: Table) -> DataFrame:
    """The frame with exactly the columns of the table; a wrong type is our own bug and raises."""
    wanted = schema_of(table)
    found = {field.name: field.dataType for field in frame.schema}
    for field in wanted:
        if found.get(field.name) != field.dataType:
            raise TypeError(f"{table.name}.{field.name} is {found.get(field.name)}, not {field.dataType}")
    return frame.select(*wanted.fieldNames())
