"""The trace of a node: rotating files of JSON lines, written and read.

The newest file is ``trace.jsonl``, the one before it ``trace.jsonl.1``, and so on. The first line of
a file, and of each run within it, is a header; every other line is one row, ids in hex, what is
absent left out.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
from msgspec.structs import asdict

from linnet.core.errors import TraceError
from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.trace.canonical import microseconds, seconds
from linnet.trace.records import LOSS_KINDS, SCHEMA, SCHEMA_VERSION, Kind, Level, Record, Row, row_of

FILE_NAME = "trace.jsonl"
PER_MINUTE = "per_minute"
"""The note of a row that counts the events of one kind and topic in the minute that begins at its time."""
PER_PERIOD = "more than are written one by one"
"""The note of a row that counts events of one kind and reason that have no rows of their own."""

_BUFFER_BYTES = 64 * 1024
FLUSH_PERIOD = 1.0
"""Seconds that a row stays in memory at most while others are written, unless set otherwise."""
_COUNTERS = 4096
"""Pairs of topic and kind that are counted apart in a minute; the rest are counted without a topic."""


FLOODS = frozenset({Kind.REJECTED, Kind.CONTROL, Kind.LINK_UP, Kind.LINK_DOWN})
"""The kinds of rows that peers can cause at will, as many as they like."""
FIRST = LAST = 1000
"""Rows of one kind and reason that are written in a period: the first ones as they come, and the last."""
PERIOD = 3600.0
"""Seconds after which the first rows of a kind and reason are written again as they come."""


class Header(msgspec.Struct, frozen=True):
    """The first line of a file."""

    linnet_trace: int
    """Version of the schema."""
    level: Level
    columns: tuple[str, ...]


class Line(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    """A row as it is written."""

    time: float
    node: str
    counter: int
    kind: Kind
    topic: str | None = None
    event: str | None = None
    device: str | None = None
    seq: int | None = None
    events: int
    peer: str | None = None
    hops: int | None = None
    bytes: int | None = None
    reason: str | None = None
    note: str | None = None


class RotatingFile:
    """The newest lines of a trace, in at most `keep` files of `max_bytes` each.

    A disk that fails stops nothing: lines that could not be written are counted in `lost`.
    """

    def __init__(self, path: Path, header: bytes, max_bytes: int, keep: int) -> None:
        self._path = path
        self._header = header
        self._max_bytes = max_bytes
        self._keep = keep
        self._buffer = bytearray()
        self._waiting = 0
        self.lost = 0
        """Lines that could not be written."""
        self._file = -1
        self._size = 0
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._open()
        except OSError as error:
            self.shut()
            raise TraceError(f"{path} cannot be opened: {error.strerror}") from error

    def write(self, line: bytes) -> None:
        """Keep a line, which waits in memory for the next flush or until there are many."""
        if self._size + len(self._buffer) + len(line) > self._max_bytes:
            self.flush()
            self._rotate()
        self._buffer += line
        self._waiting += 1
        if len(self._buffer) >= _BUFFER_BYTES:
            self.flush()

    def flush(self) -> None:
        """Hand all lines to the operating system."""
        buffer, self._buffer = self._buffer, bytearray()
        waiting, self._waiting = self._waiting, 0
        if not buffer:
            return
        try:
            if self._file < 0:
                self._open()
            _write_all(self._file, buffer)
            self._size += len(buffer)
        except OSError:
            self.lost += waiting
            self.shut()

    def shut(self) -> None:
        """Close the file; the next flush opens it again."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _open(self) -> None:
        """Open the newest file after its last whole line, which a crash or a full disk may have torn; add a
        header."""
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.fchmod(self._file, 0o600)
        whole = _whole_lines(self._file)
        os.ftruncate(self._file, whole)
        self._size = whole + len(self._header)
        _write_all(self._file, self._header)

    def _rotate(self) -> None:
        """Make room: delete the oldest file and move the others on by one. The next flush opens a new one."""
        self.shut()
        with contextlib.suppress(OSError):  # if it cannot be moved it cannot be written, and `lost` tells
            for file in trace_files(self._path.parent):
                age = _age(file)
                if age + 1 >= self._keep:
                    file.unlink()
                else:
                    file.replace(self._path.with_name(f"{FILE_NAME}.{age + 1}"))
        self._size = len(self._header)


class _Flood:
    """The rows of one node, kind and reason in a period: a flood of them must not push out the others."""

    def __init__(self, now: float) -> None:
        self.since = now
        self.written = 0
        self.held: deque[tuple[Record, float]] = deque()
        """The latest rows beyond the first ones; they are written when the flood pauses."""
        self.held_at = now
        """When the latest of them came."""
        self.passed_over = 0
        """Events of the rows that are neither among the first nor among the last."""

    def admits(self, record: Record, now: float) -> bool:
        """Return whether a row is written now; else it is held, and one before it is passed over."""
        if self.written < FIRST:
            self.written += 1
            return True
        self.held_at = now
        self.held.append((record, now))
        if len(self.held) > LAST:
            self.passed_over += self.held.popleft()[0].events
        return False

    def is_over(self, now: float) -> bool:
        """Return whether the held rows are due: the period is over, the flood pauses, the clock was set."""
        return not (self.since <= now < self.since + PERIOD and now < self.held_at + 60.0)


class JsonTrace:
    """A `TraceSink` that keeps the newest rows in a `RotatingFile`.

    At level `loss`, kinds outside `LOSS_KINDS` are only counted, per topic and minute, unless they have a
    reason. Of those that peers cause at will (`FLOODS`), the first and the last thousand of each reason are
    written in an hour; the rest are counted. The counters of rows that could not be written are missing in
    the file.
    """

    def __init__(
        self, folder: Path, level: Level, max_bytes: int, keep: int, flush_period: float = FLUSH_PERIOD
    ) -> None:
        self._level = level
        self._flush_period = flush_period
        header = Header(SCHEMA_VERSION, level, tuple(column for column, _, _ in SCHEMA))
        self._encode = msgspec.json.Encoder().encode
        self._file = RotatingFile(folder / FILE_NAME, self._encode(header) + b"\n", max_bytes, keep)
        self._flushed_at = 0.0
        self._rows: dict[PeerId, int] = {}
        self._minute = 0
        self._counts: dict[tuple[PeerId, TopicId | None, Kind], int] = {}
        self._floods: dict[tuple[PeerId, Kind, Reason | None], _Flood] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def lost(self) -> int:
        """Rows that could not be written."""
        return self._file.lost

    def write(self, node: PeerId, record: Record, now: float) -> None:
        """Write a record of a node with its time, or count it."""
        minute = int(now // 60)
        if minute != self._minute:
            self._write_counts()
            self._end_floods(now)
            self._minute = minute
        if self._level is Level.FULL:
            self._write(node, record, now)
        elif record.kind in LOSS_KINDS or record.reason is not None:
            if record.kind not in FLOODS or self._flood_of(node, record, now).admits(record, now):
                self._write(node, record, now)
        else:
            key = (node, record.topic, record.kind)
            if key not in self._counts and len(self._counts) >= _COUNTERS:
                key = (node, None, record.kind)
            self._counts[key] = self._counts.get(key, 0) + record.events
        if not 0 <= now - self._flushed_at < self._flush_period:
            self.flush()
            self._flushed_at = now

    def flush(self) -> None:
        """Hand all rows to the operating system. A driver with nothing to write calls it each second."""
        self._file.flush()

    def close(self) -> None:
        """Write the counts of the last minute and close; a second call does nothing."""
        self._write_counts()
        self._end_floods(None)
        self._file.flush()
        self._file.shut()

    def _write(self, node: PeerId, record: Record, now: float) -> None:
        counter = self._rows.get(node, 0)
        self._rows[node] = counter + 1
        row = row_of(record, seconds(microseconds(now)), node, counter)
        self._file.write(self._encode(_line(row)) + b"\n")

    def _flood_of(self, node: PeerId, record: Record, now: float) -> _Flood:
        key = (node, record.kind, record.reason)
        flood = self._floods.get(key)
        if flood is None:
            flood = self._floods[key] = _Flood(now)
        return flood

    def _end_floods(self, now: float | None) -> None:
        """Write the held rows of floods that pause or whose period is over; without a time, of all."""
        for key, flood in list(self._floods.items()):
            if now is not None and not flood.is_over(now):
                continue
            node, kind, reason = key
            if flood.passed_over:
                counted = Record(kind, events=flood.passed_over, reason=reason, note=PER_PERIOD)
                self._write(node, counted, flood.since)
            for record, at in flood.held:
                self._write(node, record, at)
            if now is None or not flood.since <= now < flood.since + PERIOD:
                del self._floods[key]
            else:
                flood.held.clear()
                flood.passed_over = 0

    def _write_counts(self) -> None:
        counts, self._counts = self._counts, {}
        for (node, topic, kind), events in counts.items():
            self._write(node, Record(kind, topic, events=events, note=PER_MINUTE), self._minute * 60.0)


def trace_files(folder: Path) -> list[Path]:
    """Return the files of a trace folder, oldest first."""
    found = [file for file in folder.glob(f"{FILE_NAME}*") if _age(file) >= 0]
    return sorted(found, key=_age, reverse=True)


def _age(file: Path) -> int:
    """Return how many files are newer; -1 if it is no trace file."""
    rest = file.name.removeprefix(FILE_NAME)
    if not rest:
        return 0
    return int(rest[1:]) if rest[0] == "." and rest[1:].isdecimal() else -1


_IDS = frozenset(name for name, kind, _ in SCHEMA if kind == "binary")
"""Columns that are written in hex."""


def _line(row: Row) -> Line:
    columns = row._asdict()
    ids = {name: columns[name].hex() for name in _IDS if columns[name] is not None}
    return Line(**{**columns, **ids})


def _row(line: Line) -> Row:
    columns = asdict(line)
    ids = {name: bytes.fromhex(columns[name]) for name in _IDS if columns[name] is not None}
    return Row(**{**columns, **ids, "kind": line.kind.value})


def _write_all(file: int, data: bytes | bytearray) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _whole_lines(file: int) -> int:
    """Return how many bytes of a file are whole lines."""
    end = os.fstat(file).st_size
    while end:
        begin = max(0, end - _BUFFER_BYTES)
        found = os.pread(file, end - begin, begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        end = begin
    return 0


_HEADER_START = b'{"linnet_trace":'
_decode_header = msgspec.json.Decoder(Header).decode
_decode_line = msgspec.json.Decoder(Line).decode


def read_trace(path: Path) -> Iterator[Row]:
    """Iterate over the rows of a trace file, or of all files of a node's trace folder, oldest first.

    A last line that a crash has torn is left out. Any other error raises `TraceError` with file and line.
    """
    for file in trace_files(path) if path.is_dir() else [path]:
        try:
            with file.open("rb") as lines:
                yield from _rows(file, lines)
        except OSError as error:
            raise TraceError(f"{file} cannot be read: {error.strerror}") from error


def _rows(file: Path, lines: Iterator[bytes]) -> Iterator[Row]:
    for number, line in enumerate(lines, 1):
        if not line.endswith(b"\n"):
            return
        try:
            if number == 1 or line.startswith(_HEADER_START):
                _check_header(file, _decode_header(line))
            else:
                yield _row(_decode_line(line))
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
            raise TraceError(f"{file}:{number}: {error}") from error


def _check_header(file: Path, header: Header) -> None:
    if header.linnet_trace > SCHEMA_VERSION:
        raise TraceError(
            f"{file} was written by a newer Linnet (schema {header.linnet_trace}, "
            f"this one knows {SCHEMA_VERSION}): upgrade Linnet to read it"
        )
