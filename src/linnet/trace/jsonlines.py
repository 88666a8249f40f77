"""The trace of a node: rotating files of JSON lines.

The newest file is ``trace.jsonl``, the one before it ``trace.jsonl.1``, and so on. The first line of
a file, and of each run within it, is a header; every other line is one row, ids in hex, what is
absent left out.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from linnet.core.errors import TraceError
from linnet.core.ids import PeerId, TopicId
from linnet.trace.canonical import microseconds, seconds
from linnet.trace.records import LOSS_KINDS, SCHEMA, SCHEMA_VERSION, Kind, Level, Record

FILE_NAME = "trace.jsonl"
PER_MINUTE = "per_minute"
"""The note of a row that counts the events of one kind and topic in the minute that begins at its time."""

_BUFFER_BYTES = 64 * 1024
FLUSH_PERIOD = 1.0
"""Seconds that a row waits in memory at most while others come, unless told otherwise."""
_COUNTERS = 4096
"""Pairs of topic and kind that are counted apart in a minute; the rest is counted without a topic."""


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


class JsonTrace:
    """A `TraceSink` that keeps the newest rows in at most `keep` files of `max_bytes` each.

    At level `loss`, kinds outside `LOSS_KINDS` are only counted, per topic and minute, unless they
    have a reason. A disk that
    fails stops nothing: rows that could not be written are counted in `lost`, and their counters are
    missing in the file.
    """

    def __init__(
        self, folder: Path, level: Level, max_bytes: int, keep: int, flush_period: float = FLUSH_PERIOD
    ) -> None:
        self._path = folder / FILE_NAME
        self._level = level
        self._max_bytes = max_bytes
        self._keep = keep
        self._flush_period = flush_period
        self._header = (
            msgspec.json.encode(Header(SCHEMA_VERSION, level, tuple(c for c, _, _ in SCHEMA))) + b"\n"
        )
        self._encode = msgspec.json.Encoder().encode
        self._buffer = bytearray()
        self._waiting = 0
        self._flushed_at = 0.0
        self._rows: dict[PeerId, int] = {}
        self._minute = 0
        self._counts: dict[tuple[PeerId, TopicId | None, Kind], int] = {}
        self.lost = 0
        """Rows that could not be written."""
        self._file = -1
        self._size = 0
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._open()
        except OSError as error:
            self._shut()
            raise TraceError(f"{self._path} cannot be opened: {error.strerror}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def write(self, node: PeerId, record: Record, now: float) -> None:
        """Keep a record of this node and time."""
        minute = int(now // 60)
        if minute != self._minute:
            self._write_counts()
            self._minute = minute
        if self._level is Level.FULL or record.kind in LOSS_KINDS or record.reason is not None:
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
            self._shut()

    def close(self) -> None:
        """Write the counts of the last minute and close; again does nothing."""
        self._write_counts()
        self.flush()
        self._shut()

    def _write(self, node: PeerId, record: Record, now: float) -> None:
        counter = self._rows.get(node, 0)
        self._rows[node] = counter + 1
        line = self._encode(_line(node, record, now, counter)) + b"\n"
        if self._size + len(self._buffer) + len(line) > self._max_bytes:
            self.flush()
            self._rotate()
        self._buffer += line
        self._waiting += 1
        if len(self._buffer) >= _BUFFER_BYTES:
            self.flush()

    def _write_counts(self) -> None:
        counts, self._counts = self._counts, {}
        for (node, topic, kind), events in counts.items():
            self._write(node, Record(kind, topic, events=events, note=PER_MINUTE), self._minute * 60.0)

    def _open(self) -> None:
        """Go on behind the last whole line, with a header: a crash or a full disk may have torn it."""
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.fchmod(self._file, 0o600)
        whole = _whole_lines(self._file)
        os.ftruncate(self._file, whole)
        self._size = whole + len(self._header)
        _write_all(self._file, self._header)

    def _shut(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _rotate(self) -> None:
        """Make room: the oldest file goes, the others move on by one. The next flush opens a new one."""
        self._shut()
        with contextlib.suppress(OSError):  # if it cannot be moved it cannot be written, and `lost` tells
            for file in trace_files(self._path.parent):
                age = _age(file)
                if age + 1 >= self._keep:
                    file.unlink()
                else:
                    file.replace(self._path.with_name(f"{FILE_NAME}.{age + 1}"))
        self._size = len(self._header)


def trace_files(folder: Path) -> list[Path]:
    """The files of a trace folder, oldest first."""
    found = [file for file in folder.glob(f"{FILE_NAME}*") if _age(file) >= 0]
    return sorted(found, key=_age, reverse=True)


def _age(file: Path) -> int:
    """How many files are newer; -1 if it is none of ours."""
    rest = file.name.removeprefix(FILE_NAME)
    if not rest:
        return 0
    return int(rest[1:]) if rest[0] == "." and rest[1:].isdecimal() else -1


def _line(node: PeerId, record: Record, now: float, counter: int) -> Line:
    return Line(
        time=seconds(microseconds(now)),
        node=node.hex(),
        counter=counter,
        kind=record.kind,
        topic=_hex(record.topic),
        event=_hex(record.event),
        device=_hex(record.device),
        seq=record.seq,
        events=record.events,
        peer=_hex(record.peer),
        hops=record.hops,
        bytes=record.bytes,
        reason=None if record.reason is None else record.reason.value,
        note=record.note,
    )


def _hex(value: bytes | None) -> str | None:
    return None if value is None else value.hex()


def _write_all(file: int, data: bytes | bytearray) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _whole_lines(file: int) -> int:
    """How many bytes of a file are whole lines."""
    end = os.fstat(file).st_size
    while end:
        begin = max(0, end - _BUFFER_BYTES)
        found = os.pread(file, end - begin, begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        end = begin
    return 0
