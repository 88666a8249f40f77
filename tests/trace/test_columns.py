from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.ids import DeviceId, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.trace.canonical import trace_sha256
from linnet.trace.columns import ColumnTrace
from linnet.trace.records import Kind, Record, Row, row_of

ANN, BEN = PeerId(b"a" * 32), PeerId(b"b" * 32)

RECORDS = st.builds(
    Record,
    st.sampled_from(Kind),
    st.none() | st.binary(min_size=1, max_size=2).map(TopicId),
    st.none() | st.binary(max_size=2).map(EventId),
    st.none() | st.binary(max_size=2).map(DeviceId),
    st.none() | st.integers(0, 2**63 - 1),
    st.integers(0, 2**31 - 1),
    st.none() | st.binary(max_size=2).map(PeerId),
    st.none() | st.integers(0, 100),
    st.none() | st.integers(0, 2**40),
    st.none() | st.sampled_from(Reason),
    st.none() | st.text(max_size=3),
)
WRITES = st.lists(
    st.tuples(st.sampled_from([BEN, ANN]), RECORDS, st.integers(0, 5).map(lambda n: 1.7e9 + n / 1000)),
    max_size=20,
)


def written(writes: list[tuple[PeerId, Record, float]]) -> ColumnTrace:
    trace = ColumnTrace()
    for node, record, now in writes:
        trace.write(node, record, now)
    return trace


def expected(writes: list[tuple[PeerId, Record, float]]) -> list[Row]:
    rows: list[Row] = []
    counters: dict[PeerId, int] = {}
    for node, record, now in writes:
        counter = counters[node] = counters.get(node, -1) + 1
        rows.append(row_of(record, now, node, counter))
    return sorted(rows, key=lambda row: row[:3])


@given(WRITES, st.booleans())
def test_rows_come_in_order_of_time_node_and_counter(
    writes: list[tuple[PeerId, Record, float]], in_time: bool
) -> None:
    if in_time:
        writes.sort(key=lambda write: write[2])
    trace = written(writes)
    rows = list(trace.rows())
    assert rows == expected(writes)
    assert all(type(row.kind) is str and type(row.reason) in (str, type(None)) for row in rows)
    assert trace.sha256() == trace_sha256(rows)
    assert len(trace) == len(writes)


def test_times_are_whole_microseconds() -> None:
    trace = written([(ANN, Record(Kind.SENT), 0.1 + 0.2), (ANN, Record(Kind.SENT), 1_700_000_000.1234567)])
    assert [row.time for row in trace.rows()] == [0.3, 1_700_000_000.123457]


def test_any_change_changes_the_hash() -> None:
    base = [(ANN, Record(Kind.SENT, TopicId(b"t")), 1.0), (BEN, Record(Kind.RECEIVED), 2.0)]
    others: list[list[tuple[PeerId, Record, float]]] = [
        [],
        base[:1],
        [(BEN, base[0][1], 1.0), base[1]],
        [(ANN, Record(Kind.SENT), 1.0), base[1]],
        [(ANN, base[0][1], 1.000001), base[1]],
    ]
    hashes = [written(writes).sha256() for writes in [base, *others]]
    assert len(dict.fromkeys(hashes)) == len(hashes)
    swapped = [(BEN, base[0][1], 1.0), (ANN, base[1][1], 1.0)]
    assert written(swapped).sha256() == written(swapped[::-1]).sha256()


SCRIPT = """
from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.trace.columns import ColumnTrace
from linnet.trace.records import Kind, Record
trace = ColumnTrace()
for node in (b"x", b"a"):
    for number in range(3):
        record = Record(Kind.DROPPED, TopicId(b"t"), reason=Reason.LOST, note=str(number))
        trace.write(PeerId(node), record, 5 + number // 2)
print(trace.sha256())
"""


@pytest.mark.parametrize("seed", ["1", "2", "random"])
def test_the_hash_is_the_same_in_every_process(seed: str) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    places = [(5, b"a", 0), (5, b"a", 1), (5, b"x", 0), (5, b"x", 1), (6, b"a", 2), (6, b"x", 2)]
    absent = [None] * 3
    rows = [
        [time * 10**6, node, counter, "dropped", b"t", *absent, 1, *absent, "lost", str(counter)]
        for time, node, counter in places
    ]
    assert ran.stdout.strip() == hashlib.sha256(b"".join(map(msgspec.msgpack.encode, rows))).hexdigest()
