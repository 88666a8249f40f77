from __future__ import annotations

import json
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from linnet.core.errors import TraceError
from linnet.core.ids import DeviceId, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.trace.jsonlines import JsonTrace, read_trace, trace_files
from linnet.trace.records import SCHEMA, Kind, Level, Record, Row, row_of

NODE = PeerId(b"n" * 32)
NEWS = TopicId(b"t" * 32)
SPORT = TopicId(b"s" * 32)
REJECTED = Record(
    Kind.REJECTED,
    NEWS,
    EventId(b"e" * 32),
    DeviceId(b"d" * 8),
    7,
    3,
    PeerId(b"p" * 32),
    2,
    512,
    Reason.BAD_SIGNATURE,
    "a few words",
)
UP = Record(Kind.LINK_UP, peer=PeerId(b"p" * 32))


def open_trace(folder: Path, level: Level = Level.FULL, max_bytes: int = 1 << 20, keep: int = 3) -> JsonTrace:
    return JsonTrace(folder, level, max_bytes, keep)


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    with open_trace(tmp_path) as trace:
        trace.write(NODE, REJECTED, 1_700_000_000.123456)
        trace.write(NODE, UP, 1_700_000_000.5)
    assert list(read_trace(tmp_path)) == [
        row_of(REJECTED, 1_700_000_000.123456, NODE, 0),
        row_of(UP, 1_700_000_000.5, NODE, 1),
    ]


def test_a_line_is_a_row_with_hex_and_without_what_is_absent(tmp_path: Path) -> None:
    with open_trace(tmp_path) as trace:
        trace.write(NODE, UP, 60.0)
    header, line = (tmp_path / "trace.jsonl").read_text().splitlines()
    assert json.loads(header) == {
        "linnet_trace": 1,
        "level": "full",
        "columns": [name for name, _, _ in SCHEMA],
    }
    assert json.loads(line) == {
        "time": 60.0,
        "node": "6e" * 32,
        "counter": 0,
        "kind": "link_up",
        "events": 1,
        "peer": "70" * 32,
    }


def test_at_level_loss_the_rest_is_counted_per_topic_and_minute(tmp_path: Path) -> None:
    with open_trace(tmp_path, Level.LOSS) as trace:
        for now in (120.0, 150.0, 179.9):
            trace.write(NODE, Record(Kind.DELIVERED, NEWS, EventId(b"e" * 32), events=2), now)
            trace.write(NODE, Record(Kind.SENT, NEWS, peer=PeerId(b"p" * 32)), now)
        trace.write(NODE, Record(Kind.DELIVERED, SPORT), 179.9)
        trace.write(NODE, UP, 179.9)
        trace.write(NODE, Record(Kind.DELIVERED, NEWS), 180.0)
    assert list(read_trace(tmp_path)) == [
        row_of(UP, 179.9, NODE, 0),
        count(Kind.DELIVERED, NEWS, 6, 120.0, 1),
        count(Kind.SENT, NEWS, 3, 120.0, 2),
        count(Kind.DELIVERED, SPORT, 1, 120.0, 3),
        count(Kind.DELIVERED, NEWS, 1, 180.0, 4),
    ]


def count(kind: Kind, topic: TopicId | None, events: int, time: float, counter: int) -> Row:
    return row_of(Record(kind, topic, events=events, note="per_minute"), time, NODE, counter)


def test_past_the_most_counters_the_topic_is_left_out_but_nothing_is_lost(tmp_path: Path) -> None:
    with open_trace(tmp_path, Level.LOSS) as trace:
        for number in range(5000):
            trace.write(NODE, Record(Kind.CONTROL, TopicId(b"%032d" % number)), 0.0)
    rows = list(read_trace(tmp_path))
    assert sum(row.events for row in rows) == 5000
    assert rows[-1] == count(Kind.CONTROL, None, 5000 - 4096, 0.0, 4096)


def test_files_rotate_and_their_total_is_bounded(tmp_path: Path) -> None:
    with open_trace(tmp_path, max_bytes=4096, keep=3) as trace:
        for number in range(200):
            trace.write(NODE, Record(Kind.OFFLINE, note=str(number)), float(number))
    names = [file.name for file in trace_files(tmp_path)]
    assert names == ["trace.jsonl.2", "trace.jsonl.1", "trace.jsonl"]
    assert all(file.stat().st_size <= 4096 for file in tmp_path.iterdir())
    assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()} == {0o600}
    counters = [row.counter for row in read_trace(tmp_path)]
    assert counters == list(range(counters[0], 200))
    assert 50 < len(counters) < 150


def test_fewer_files_are_kept_when_asked_for_later(tmp_path: Path) -> None:
    for keep in (5, 1):
        with open_trace(tmp_path, max_bytes=2048, keep=keep) as trace:
            for number in range(100):
                trace.write(NODE, UP, float(number))
    assert [file.name for file in trace_files(tmp_path)] == ["trace.jsonl"]


def test_without_a_flush_period_every_row_is_there_at_once(tmp_path: Path) -> None:
    trace = JsonTrace(tmp_path, Level.FULL, 1 << 20, 3, flush_period=0)
    for number in range(3):
        trace.write(NODE, UP, 60.0)
        assert len(list(read_trace(tmp_path))) == number + 1
    trace.close()


def test_rows_are_seen_within_a_second_or_a_flush(tmp_path: Path) -> None:
    trace = open_trace(tmp_path)
    trace.write(NODE, UP, 10.0)
    trace.write(NODE, UP, 10.4)
    trace.write(NODE, UP, 10.8)
    assert len(list(read_trace(tmp_path))) == 1
    trace.write(NODE, UP, 11.0)
    assert len(list(read_trace(tmp_path))) == 4
    trace.write(NODE, UP, 11.1)
    trace.flush()
    assert len(list(read_trace(tmp_path))) == 5
    trace.close()
    trace.close()


def test_the_next_run_goes_on_behind_a_torn_line(tmp_path: Path) -> None:
    with open_trace(tmp_path) as trace:
        trace.write(NODE, UP, 1.0)
        trace.write(NODE, REJECTED, 2.0)
    file = tmp_path / "trace.jsonl"
    file.write_bytes(file.read_bytes()[:-40])
    with open_trace(tmp_path) as trace:
        trace.write(NODE, UP, 3.0)
    assert list(read_trace(tmp_path)) == [row_of(UP, 1.0, NODE, 0), row_of(UP, 3.0, NODE, 0)]


@contextmanager
def full_disk(used: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (used, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_stops_nothing_and_shows_in_the_counters(tmp_path: Path) -> None:
    trace = open_trace(tmp_path)
    trace.write(NODE, UP, 1.0)
    with full_disk((tmp_path / "trace.jsonl").stat().st_size + 20):
        trace.write(NODE, UP, 2.0)
        trace.write(NODE, UP, 3.0)
    assert trace.lost == 2
    trace.write(NODE, UP, 4.0)
    trace.close()
    assert [row.counter for row in read_trace(tmp_path)] == [0, 3]


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TraceError, match="cannot be opened"):
        open_trace(tmp_path / "file" / "trace")
