"""One schema: rows, JSON lines and Parquet columns agree."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from msgspec.structs import fields

from linnet.core.ids import DeviceId, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.trace.canonical import trace_sha256
from linnet.trace.columns import ColumnTrace
from linnet.trace.jsonlines import JsonTrace, Line, read_trace
from linnet.trace.records import SCHEMA, SCHEMA_VERSION, Kind, Level, Record, Row

NODES = [PeerId(b"b" * 32), PeerId(b"a" * 32)]
FULL = Record(
    Kind.DROPPED,
    TopicId(b"t" * 32),
    EventId(b"e" * 32),
    DeviceId(b"d" * 8),
    seq=0,
    events=2,
    peer=NODES[0],
    hops=0,
    bytes=0,
    reason=Reason.LOST,
    note="",
)
WRITES = [
    (NODES[number % 2], FULL if number % 3 else Record(Kind.ONLINE), 1.7e9 + number // 4 / 7)
    for number in range(50)
]
COLUMNS = [name for name, _, _ in SCHEMA]


def test_rows_and_lines_have_the_columns_of_the_schema() -> None:
    assert list(Row._fields) == COLUMNS
    assert list(Line.__struct_fields__) == COLUMNS
    assert [(field.name, not field.required) for field in fields(Line)] == [
        (name, nullable) for name, _, nullable in SCHEMA
    ]


def test_a_table_has_the_types_of_the_schema() -> None:
    table = ColumnTrace().to_arrow()
    names = {"double": "double", "binary": "binary", "bigint": "int64", "string": "string"}
    assert [(field.name, str(field.type), field.nullable) for field in table.schema] == [
        (name, names[kind], nullable) for name, kind, nullable in SCHEMA
    ]
    assert table.schema.metadata == {b"linnet_trace": str(SCHEMA_VERSION).encode()}
    assert table.num_rows == 0


def test_every_writer_gives_the_same_rows(tmp_path: Path) -> None:
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    columns = ColumnTrace()
    with JsonTrace(tmp_path / "trace", Level.FULL, 1 << 20, 2) as lines:
        for node, record, now in WRITES:
            columns.write(node, record, now)
            lines.write(node, record, now)
    columns.write_parquet(tmp_path / "trace.parquet")
    rows = list(columns.rows())
    assert len(rows) == 50
    assert sorted(read_trace(tmp_path / "trace"), key=lambda row: row[:3]) == rows
    tables = [columns.to_arrow(), pq.read_table(tmp_path / "trace.parquet")]
    for table in tables:
        assert table.column_names == COLUMNS
        assert [Row(**row) for row in table.to_pylist()] == rows
    assert columns.sha256() == trace_sha256(rows)


def test_without_arrow_the_error_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from linnet.trace.columns import ColumnTrace\n"
        "trace = ColumnTrace(); trace.sha256()\n"
        "try: trace.to_arrow()\nexcept Exception as error: print(type(error).__name__, error)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout == "TraceError tables need pyarrow: pip install 'linnet[sim]'\n"
