"""A flood of one kind of row leaves the others in the trace, and its own first and last ones."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.trace.jsonlines import PER_PERIOD, JsonTrace, read_trace
from linnet.trace.records import Kind, Level, Record, Row

NODE = PeerId(b"n" * 32)
BEGIN = 1_700_000_040.0


def rejected(number: int, reason: Reason = Reason.UNSUPPORTED) -> Record:
    return Record(Kind.REJECTED, reason=reason, note=str(number))


def flood(trace: JsonTrace, rows: int, begin: float = BEGIN, pause: float = 0.001) -> None:
    for number in range(rows):
        trace.write(NODE, rejected(number), begin + number * pause)


def read(folder: Path) -> list[Row]:
    rows = list(read_trace(folder))
    assert [row.counter for row in rows] == list(range(rows[0].counter, rows[-1].counter + 1))
    return rows


def test_the_first_and_the_last_thousand_are_there_and_the_rest_is_counted(tmp_path: Path) -> None:
    with JsonTrace(tmp_path, Level.LOSS, 1 << 22, 3) as trace:
        flood(trace, 50_000)
    rows = read(tmp_path)
    numbered = [int(row.note or -1) for row in rows if row.note != PER_PERIOD]
    assert numbered == [*range(1000), *range(49_000, 50_000)]
    (counted,) = (row for row in rows if row.note == PER_PERIOD)
    assert (counted.kind, counted.reason, counted.events) == (Kind.REJECTED, Reason.UNSUPPORTED, 48_000)
    assert counted.time == BEGIN


def test_rows_that_were_there_before_a_flood_are_there_after_it(tmp_path: Path) -> None:
    """However many times as much as all files hold the flood would take."""
    with JsonTrace(tmp_path, Level.LOSS, 1 << 20, 2) as trace:
        for number in range(5):
            trace.write(NODE, Record(Kind.DROPPED, reason=Reason.QUEUE_FULL, note=str(number)), BEGIN)
            trace.write(NODE, rejected(number, Reason.BAD_SIGNATURE), BEGIN)
        flood(trace, 200_000)
    kept = Counter((row.kind, row.reason) for row in read(tmp_path) if row.note != PER_PERIOD)
    assert kept == {
        (Kind.DROPPED, Reason.QUEUE_FULL): 5,
        (Kind.REJECTED, Reason.BAD_SIGNATURE): 5,
        (Kind.REJECTED, Reason.UNSUPPORTED): 2000,
    }


def test_what_happened_to_events_is_written_one_by_one_whatever_its_number(tmp_path: Path) -> None:
    with JsonTrace(tmp_path, Level.LOSS, 1 << 24, 2) as trace:
        for number in range(5000):
            trace.write(NODE, Record(Kind.DROPPED, reason=Reason.QUEUE_FULL, note=str(number)), BEGIN)
    assert len(read(tmp_path)) == 5000


def test_links_that_come_and_go_without_end_are_a_flood_too(tmp_path: Path) -> None:
    with JsonTrace(tmp_path, Level.LOSS, 1 << 22, 2) as trace:
        for _ in range(20_000):
            trace.write(NODE, Record(Kind.LINK_UP), BEGIN)
            trace.write(NODE, Record(Kind.LINK_DOWN, reason=Reason.REMOTE_CLOSED), BEGIN)
    counts = Counter(row.kind for row in read(tmp_path))
    assert counts == {Kind.LINK_UP: 2001, Kind.LINK_DOWN: 2001}


def test_the_last_of_a_flood_are_written_when_it_has_paused_for_a_minute(tmp_path: Path) -> None:
    trace = JsonTrace(tmp_path, Level.LOSS, 1 << 22, 2, flush_period=0.0)
    flood(trace, 3000)
    assert len(read(tmp_path)) == 1000
    trace.write(NODE, Record(Kind.ONLINE), BEGIN + 30.0)
    assert len(read(tmp_path)) == 1001
    trace.write(NODE, Record(Kind.ONLINE), BEGIN + 70.0)
    assert len(read(tmp_path)) == 1001 + 1001 + 1
    trace.close()
    assert len(read(tmp_path)) == 1001 + 1001 + 1


def test_an_hour_later_the_first_rows_are_written_again(tmp_path: Path) -> None:
    with JsonTrace(tmp_path, Level.LOSS, 1 << 22, 2) as trace:
        flood(trace, 7200, pause=1.0)
    rows = [int(row.note or -1) for row in read(tmp_path) if row.note != PER_PERIOD]
    assert rows[:1000] == list(range(1000))
    assert rows[1000:] == [*range(2600, 3600), *range(3600, 4600), *range(6200, 7200)]


def test_a_clock_that_is_set_ends_the_period(tmp_path: Path) -> None:
    with JsonTrace(tmp_path, Level.LOSS, 1 << 22, 2, flush_period=0.0) as trace:
        flood(trace, 1500)
        flood(trace, 1200, begin=BEGIN - 1_000_000)
        assert len(read(tmp_path)) == 1000 + 500 + 1000


def test_at_level_full_every_row_is_written(tmp_path: Path) -> None:
    with JsonTrace(tmp_path, Level.FULL, 1 << 24, 2) as trace:
        flood(trace, 5000)
    assert len(read(tmp_path)) == 5000
