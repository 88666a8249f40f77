"""What lies in the folder of a table: its files with rows and digests, and what must hold of its rows.

Rows and missing values stand in the footers of Parquet files, so that counting them reads next to nothing.
A digest reads every byte once, several files at a time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from msgspec import Struct

from linnet.lab.errors import LabError
from linnet.lab.tables import Table

SUFFIX = ".parquet"
_READERS = 4
_BLOCK = 1 << 20
HERE = 2_000_000
"""Rows whose keys are compared in this process: some 200 MB. More are compared by Spark."""


class Part(Struct, frozen=True, order=True):
    """One file of a table."""

    name: str
    rows: int
    digest: str
    """SHA-256 of its bytes."""


def data_files(folder: Path) -> list[Path]:
    """The files of a table that hold rows, in the order of their names."""
    hidden = (".", "_")
    return sorted(path for path in folder.glob(f"*{SUFFIX}") if not path.name.startswith(hidden))


def parts_of(folder: Path) -> tuple[Part, ...]:
    """Every file of a table, read once; `LabError` names one that cannot be read."""
    with ThreadPoolExecutor(_READERS) as readers:
        return tuple(readers.map(_part, data_files(folder)))


def _part(path: Path) -> Part:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    except OSError as error:
        raise LabError(f"{path} cannot be read: {error.strerror}") from error
    return Part(path.name, footer(path).num_rows, digest.hexdigest())


def footer(path: Path) -> pq.FileMetaData:
    """What a Parquet file says of itself at its end."""
    try:
        return pq.read_metadata(path)
    except (OSError, pa.ArrowException) as error:
        raise LabError(f"{path} is no whole Parquet file: bring it back, or make its table again") from error


def check_nulls(files: Sequence[Path], table: Table, required: Sequence[str]) -> None:
    """`LabError` if a column that must be there in every row is not."""
    for path in files:
        told = footer(path)
        for name in required:
            missing = _nulls(path, told, name)
            if missing:
                raise LabError(
                    f"the table {table.name} must have {name} in every row, and {missing:,} of "
                    f"{told.num_rows:,} rows of {path} have none: mend what it is made from, make it again"
                )


def _nulls(path: Path, told: pq.FileMetaData, name: str) -> int:
    names = [told.schema.column(at).path.partition(".")[0] for at in range(told.num_columns)]
    if name not in names:
        raise LabError(f"{path} has no column {name}: make its table again")
    at = names.index(name)
    plain = told.schema.column(at).path == name
    groups = [told.row_group(number).column(at) for number in range(told.num_row_groups)]
    if plain and all(each.is_stats_set and each.statistics.has_null_count for each in groups):
        return sum(each.statistics.null_count for each in groups)
    # Of what has parts, the footer counts those of the parts.
    column = pq.ParquetFile(path).read(columns=[name]).column(0)
    return int(column.null_count)


def check_grain(
    folder: Path, table: Table, rows: int, elsewhere: Callable[[], Sequence[object] | None]
) -> None:
    """`LabError` if two rows have the same name; `elsewhere` finds one of them in a large table."""
    if not table.grain or rows < 2:
        return
    found = _repeated(folder, table, rows) if rows <= HERE else elsewhere()
    if found is not None:
        key = ", ".join(f"{name} {_word(value)}" for name, value in zip(table.grain, found, strict=True))
        raise LabError(
            f"the table {table.name} must have one row for each {', '.join(table.grain)}, and {folder} has "
            f"several for {key}: mend what it is made from, and make it again"
        )


def _repeated(folder: Path, table: Table, rows: int) -> list[object] | None:
    keys = [pq.ParquetFile(path).read(columns=list(table.grain)) for path in data_files(folder)]
    counts = pa.concat_tables(keys).group_by(list(table.grain)).aggregate([([], "count_all")])
    if counts.num_rows == rows:
        return None
    often = pc.greater(counts.column("count_all"), 1)
    first = counts.filter(often).slice(0, 1).to_pylist()[0]
    return [first[name] for name in table.grain]


def _word(value: object) -> str:
    return value.hex()[:16] if isinstance(value, bytes | bytearray) else repr(value)
