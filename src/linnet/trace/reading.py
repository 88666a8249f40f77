"""Reading what `JsonTrace` wrote."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from linnet.core.errors import TraceError
from linnet.trace.jsonlines import Header, Line, trace_files
from linnet.trace.records import SCHEMA_VERSION, Row

_HEADER_START = b'{"linnet_trace":'
_decode_header = msgspec.json.Decoder(Header).decode
_decode_line = msgspec.json.Decoder(Line).decode


def read_trace(path: Path) -> Iterator[Row]:
    """The rows of a trace file, or of all files of a node's trace folder, oldest first.

    A last line that a crash has torn is left out. Anything else that is wrong raises `TraceError`
    with file and line.
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


def _row(line: Line) -> Row:
    return Row(
        line.time,
        bytes.fromhex(line.node),
        line.counter,
        line.kind.value,
        _bytes(line.topic),
        _bytes(line.event),
        _bytes(line.device),
        line.seq,
        line.events,
        _bytes(line.peer),
        line.hops,
        line.bytes,
        line.reason,
        line.note,
    )


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)
