"""The files of a trace: found, looked at, and known by their content before any work is done."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from msgspec import Struct

from linnet.lab.contents import check_nulls
from linnet.lab.errors import LabError
from linnet.lab.tables import TRACE
from linnet.trace.arrow import ARROW_SCHEMA
from linnet.trace.jsonlines import FILE_NAME, Header, Line
from linnet.trace.records import SCHEMA, SCHEMA_VERSION, Level

_TAIL = 1 << 16
"""Bytes at the end of a file in which its last line begins; a longer one is no row of ours."""

_header = msgspec.json.Decoder(Header)
_line = msgspec.json.Decoder(Line)


class LineFile(Struct, frozen=True):
    """A file of JSON lines."""

    path: Path
    level: Level
    node: str | None
    """Who wrote its first row, in hex."""
    torn: str | None
    """What stands after the last end of line: a row that is being written, or that a crash cut short."""

    @property
    def label(self) -> str:
        """The name of the home that it lies in, for people."""
        folder = self.path.resolve().parent
        return folder.parent.name if folder.name == "trace" else folder.name


class Sources(Struct, frozen=True):
    """What an audit reads."""

    lines: tuple[LineFile, ...]
    tables: tuple[Path, ...]
    """Parquet files."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """All files."""
        return (*(file.path for file in self.lines), *self.tables)


def find_sources(given: Sequence[Path], without: Path | None = None) -> Sources:
    """The trace files that are named or that lie in named folders; `LabError` says what is wrong."""
    lines: dict[Path, LineFile] = {}
    tables: dict[Path, None] = {}
    for path in given:
        found = list(_files(path, without))
        if not found:
            raise LabError(f"{path} holds no trace: give {FILE_NAME} files, Parquet files, or their folders")
        for file in found:
            if file.suffix == ".parquet":
                check_columns(file)
                tables[file.resolve()] = None
            else:
                lines[file.resolve()] = look(file)
    return Sources(tuple(lines.values()), tuple(tables))


def _files(path: Path, without: Path | None) -> Iterable[Path]:
    if not path.exists():
        raise LabError(f"there is no {path}")
    if path.is_file():
        return [path]
    # What an earlier audit wrote there is no trace of a node.
    own = None if without is None else without.resolve()
    return [
        file
        for file in sorted(path.rglob("*"))
        if file.is_file()
        and _is_trace(file.relative_to(path))
        and (own is None or own not in file.resolve().parents)
    ]


def _is_trace(file: Path) -> bool:
    name = file.name
    if any(part.startswith((".", "_")) for part in file.parts):
        return False
    age = name.removeprefix(FILE_NAME)
    return (
        name == FILE_NAME
        or name.endswith(".parquet")
        or (age != name and age[1:].isdecimal() and age[0] == ".")
    )


def check_columns(path: Path) -> None:
    """`LabError` unless this is a Parquet file with the columns of a trace."""
    try:
        found = pq.read_schema(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise LabError(f"{path} is no Parquet file that can be read") from error
    for field in ARROW_SCHEMA:
        if field.name not in found.names:
            raise LabError(f"{path} is no trace: it has no column {field.name}")
        kind = found.field(field.name).type
        if kind != field.type:
            raise LabError(f"{path} is no trace: {field.name} is {kind}, not {field.type}")
    check_nulls([path], TRACE, [name for name, _, nullable in SCHEMA if not nullable])


def look(path: Path) -> LineFile:
    """A file of JSON lines, by its first lines and its last."""
    try:
        with path.open("rb") as file:
            first, second = file.readline(_TAIL), file.readline(_TAIL)
            end = file.seek(0, os.SEEK_END)
            file.seek(max(0, end - _TAIL))
            tail = file.read().rpartition(b"\n")[2]
    except OSError as error:
        raise LabError(f"{path} cannot be read: {error.strerror}") from error
    header, row = _as_header(path, first), _as_line(second)
    if header is None and row is None:
        raise LabError(f"{path} is no trace of a node: its first line is no header")
    torn = tail.decode(errors="replace") if tail else None
    level = Level.FULL if header is None else header.level
    return LineFile(path, level, None if row is None else row.node, torn)


def _as_header(path: Path, line: bytes) -> Header | None:
    try:
        header = _header.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if header.linnet_trace > SCHEMA_VERSION:
        raise LabError(
            f"{path} was written by a newer Linnet (schema {header.linnet_trace}, this one knows "
            f"{SCHEMA_VERSION}): upgrade Linnet to read it"
        )
    return header


def _as_line(line: bytes) -> Line | None:
    try:
        return _line.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
