"""Linnet's own traces as messages: what was published, by whom, in which room or stream.

A trace of level ``full`` names each message. Topics are chats, devices are users. Records of rooms do not
say how large a message was: its length is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from msgspec.structs import replace

from linnet.lab.errors import LabError
from linnet.lab.sources.choices import Choices
from linnet.lab.sources.clocks import LATEST
from linnet.lab.sources.pieces import Piece, clean_lines, files_below, named_by_place, opened
from linnet.lab.sources.rows import MOST_CHARS, Bad, Found, Numbered, Said
from linnet.trace.jsonlines import FILE_NAME, PER_MINUTE, Header, Line
from linnet.trace.records import SCHEMA_VERSION, Kind, Level

_MESSAGE = "message"
"""The kind of a room's event that says something."""
_HEADER_START = '{"linnet_trace":'
_PARQUET = ".parquet"
_COLUMNS = ("time", "kind", "topic", "device", "events", "bytes", "note")
_BATCH_ROWS = 65_536

_header = msgspec.json.Decoder(Header).decode
_line = msgspec.json.Decoder(Line).decode


def pieces(paths: Sequence[Path]) -> list[Piece]:
    """The files of traces: JSON lines as nodes write them, or Parquet as simulations do."""
    found = files_below(paths, lambda path: path.name.startswith(FILE_NAME) or path.suffix == _PARQUET)
    return [replace(piece, granularity="ms") for piece in named_by_place(found)]


def inspect(pieces: Sequence[Piece], choices: Choices) -> list[Piece]:
    """Look at the beginning of each file; `LabError` if it is no trace, or one that names no message."""
    for piece in pieces:
        if piece.path.endswith(_PARQUET):
            _check_columns(piece)
        else:
            _check_header(piece)
    return list(pieces)


def _check_columns(piece: Piece) -> None:
    try:
        names = pq.read_schema(piece.path).names
    except (OSError, pa.ArrowException) as error:
        raise LabError(f"{piece.shown} is no file of Parquet: {error}") from error
    missing = [name for name in _COLUMNS if name not in names]
    if missing:
        raise LabError(f"{piece.shown} has no column {', '.join(missing)}: it is no trace of Linnet")


def _check_header(piece: Piece) -> None:
    with opened(piece) as file:
        first = next(clean_lines(file, lambda bad: None), (0, ""))[1]
    try:
        header = _header(first)
    except msgspec.DecodeError as error:
        raise LabError(f"{piece.shown} does not begin with the header of a trace") from error
    if header.linnet_trace > SCHEMA_VERSION:
        raise LabError(f"{piece.shown} was written by a newer Linnet: upgrade Linnet to read it")
    if header.level is not Level.FULL:
        raise LabError(
            f"{piece.shown} is a trace of level {header.level}, which counts messages without naming them: "
            "run the node with a trace of level full"
        )


def read(piece: Piece, choices: Choices) -> Iterator[Found]:
    """The messages of a file."""
    if piece.path.endswith(_PARQUET):
        yield from _from_parquet(piece)
        return
    faults: list[Bad] = []
    with opened(piece) as file:
        yield from parse(clean_lines(file, faults.append), piece)
    yield from faults


def parse(lines: Iterable[Numbered], piece: Piece) -> Iterator[Found]:
    """The messages in JSON lines."""
    for number, text in lines:
        if text.startswith(_HEADER_START):
            continue
        try:
            line = _line(text)
        except msgspec.DecodeError:
            yield Bad(number, "it is no record of a trace", text)
            continue
        if line.kind is Kind.PUBLISHED:
            yield from published(
                number, line.time, line.topic, line.device, line.events, line.bytes, line.note
            )


def _from_parquet(piece: Piece) -> Iterator[Found]:
    number = 0
    with pq.ParquetFile(piece.path) as file:
        for batch in file.iter_batches(_BATCH_ROWS, columns=list(_COLUMNS)):
            columns = [batch.column(name).to_pylist() for name in _COLUMNS]
            for time, kind, topic, device, events, size, note in zip(*columns, strict=True):
                number += 1
                if kind == Kind.PUBLISHED:
                    yield from published(number, time, _hex(topic), _hex(device), events, size, note)


def _hex(value: bytes | None) -> str | None:
    return None if value is None else value.hex()


def published(
    line: int,
    time: float,
    topic: str | None,
    device: str | None,
    events: int,
    size: int | None,
    note: str | None,
) -> Iterator[Found]:
    """The messages of one record: those of a burst share its bytes as evenly as whole bytes can be."""
    if note == PER_MINUTE:
        yield Bad(line, "it counts messages and does not name them", "")
    elif not 0 <= time < LATEST / 1000:
        yield Bad(line, "its time is none", "")
    elif topic is None or device is None or not 1 <= events <= MOST_CHARS:
        yield Bad(line, "it does not say in which topic, or who", "")
    else:
        each, rest = divmod(min(size or 0, MOST_CHARS), events)
        kind = "text" if note is None or note == _MESSAGE else "notice"
        ts = round(time * 1_000_000) // 1000
        for number in range(events):
            yield Said(line, (topic,), ts, device, each + (number < rest), kind, "ms")
