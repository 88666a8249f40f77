from __future__ import annotations

from pathlib import Path

import pytest

from linnet.core.errors import TraceError
from linnet.core.ids import PeerId
from linnet.trace.jsonlines import JsonTrace, read_trace
from linnet.trace.records import Kind, Level, Record, row_of

NODE = PeerId(b"n" * 32)
ONLINE = Record(Kind.ONLINE)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A trace of three rows."""
    with JsonTrace(tmp_path, Level.FULL, 1 << 20, 3) as trace:
        for now in (1.0, 2.0, 3.0):
            trace.write(NODE, ONLINE, now)
    return tmp_path / "trace.jsonl"


def test_a_torn_last_line_is_left_out_wherever_it_is_torn(file: Path) -> None:
    whole = file.read_bytes()
    begin = whole.rindex(b"\n", 0, -1) + 1
    for end in range(begin, len(whole)):
        file.write_bytes(whole[:end])
        assert list(read_trace(file)) == [row_of(ONLINE, 1.0, NODE, 0), row_of(ONLINE, 2.0, NODE, 1)]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"{}", "missing required field `time`"),
        (b"nonsense", "malformed"),
        (b'{"time":1,"node":"6e","counter":0,"kind":"sung","events":1}', "Invalid enum value 'sung'"),
        (b'{"time":1,"node":"6e","counter":0,"kind":"sent","events":1,"colour":1}', "unknown field `colour`"),
        (b'{"time":1,"node":"xx","counter":0,"kind":"sent","events":1}', "non-hexadecimal"),
        (b'{"time":1,"node":"\xff","counter":0,"kind":"sent","events":1}', "utf-8"),
        (b"", "truncated"),
    ],
)
def test_any_other_bad_line_is_named(file: Path, line: bytes, complaint: str) -> None:
    lines = file.read_bytes().splitlines()
    file.write_bytes(b"\n".join([*lines[:2], line, *lines[2:]]) + b"\n")
    with pytest.raises(TraceError, match=rf"trace\.jsonl:3: .*{complaint}"):
        list(read_trace(file))


def test_a_file_without_a_header_is_refused(file: Path) -> None:
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[1:]))
    with pytest.raises(TraceError, match=r"trace\.jsonl:1: .*linnet_trace"):
        list(read_trace(file))


def test_a_newer_file_is_refused_with_what_to_do(file: Path) -> None:
    file.write_bytes(file.read_bytes().replace(b'"linnet_trace":1', b'"linnet_trace":2'))
    with pytest.raises(TraceError, match=r"newer Linnet \(schema 2, this one knows 1\): upgrade"):
        list(read_trace(file))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"none\.jsonl cannot be read: No such file"):
        list(read_trace(tmp_path / "none.jsonl"))
    assert list(read_trace(tmp_path)) == []
