"""Linnet's own traces as messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from linnet.core.ids import DeviceId, EventId, PeerId, TopicId
from linnet.lab.errors import LabError
from linnet.lab.sources.choices import Choices
from linnet.lab.sources.own_trace import inspect, pieces, read
from linnet.lab.sources.rows import Bad, Found, Said
from linnet.trace.columns import ColumnTrace
from linnet.trace.jsonlines import FILE_NAME, JsonTrace
from linnet.trace.records import Kind, Level, Record

NODE, TOPIC, EVENT, DEVICE = PeerId(b"n" * 32), TopicId(b"t" * 32), EventId(b"e" * 32), DeviceId(b"d" * 32)
RECORDS = [
    (Record(Kind.PUBLISHED, TOPIC, EVENT, DEVICE, 1, note="message"), 1_704_110_400.25),
    (Record(Kind.PUBLISHED, TOPIC, EVENT, DEVICE, 2, note="join"), 1_704_110_401.0),
    (Record(Kind.PUBLISHED, TOPIC, EVENT, DEVICE, 3, 3, bytes=100), 1_704_110_402.0),
    (Record(Kind.DELIVERED, TOPIC, EVENT, DEVICE, 3, 3, bytes=100), 1_704_110_402.0),
    (Record(Kind.PUBLISHED, None, EVENT, DEVICE, 3), 1_704_110_403.0),
    (Record(Kind.PUBLISHED, TOPIC, EVENT, DEVICE, 4), 9e12),
]


def write_lines(folder: Path, level: Level = Level.FULL) -> None:
    with JsonTrace(folder, level, 1 << 20, 3) as trace:
        for record, time in RECORDS:
            trace.write(NODE, record, time)


def everything(path: Path) -> list[Found]:
    return [each for piece in inspect(pieces([path]), Choices()) for each in read(piece, Choices())]


def test_what_was_published_is_a_message(tmp_path: Path) -> None:
    write_lines(tmp_path)
    said = [each for each in everything(tmp_path) if isinstance(each, Said)]
    assert [(each.ts, each.chars, each.kind) for each in said] == [
        (1_704_110_400_250, 0, "text"),
        (1_704_110_401_000, 0, "notice"),
        (1_704_110_402_000, 34, "text"),
        (1_704_110_402_000, 33, "text"),
        (1_704_110_402_000, 33, "text"),
    ]
    names = {(each.chat, each.user, each.granularity) for each in said}
    assert names == {((TOPIC.hex(),), DEVICE.hex(), "ms")}
    assert [each.reason for each in everything(tmp_path) if isinstance(each, Bad)] == [
        "it does not say in which topic, or who",
        "its time is none",
    ]


def test_parquet_tells_the_same(tmp_path: Path) -> None:
    write_lines(tmp_path / "lines")
    columns = ColumnTrace()
    for record, time in RECORDS:
        columns.write(NODE, record, time)
    columns.write_parquet(tmp_path / "run.parquet")
    without_line = [each._replace(line=0) for each in everything(tmp_path / "run.parquet")]
    assert without_line == [each._replace(line=0) for each in everything(tmp_path / "lines")]


def test_a_broken_line_is_bad_and_the_rest_is_read(tmp_path: Path) -> None:
    write_lines(tmp_path)
    path = tmp_path / FILE_NAME
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], "{torn\n", *lines[1:]]))
    found = everything(tmp_path)
    assert found[0] == Bad(2, "it is no record of a trace", "{torn")
    assert len(found) == 8


def test_a_trace_that_only_counts_is_refused(tmp_path: Path) -> None:
    write_lines(tmp_path, Level.LOSS)
    with pytest.raises(LabError, match="level full"):
        everything(tmp_path)


def test_what_is_no_trace_is_refused(tmp_path: Path) -> None:
    for name, words in ((FILE_NAME, "header of a trace"), ("x.parquet", "no file of Parquet")):
        (tmp_path / name).write_text("hello\n")
        with pytest.raises(LabError, match=words):
            everything(tmp_path / name)
