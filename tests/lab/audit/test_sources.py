"""What is a trace and what is not is told before any work."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from tests.lab.audit.homes import HEADER, TORN, Homes, write_lines
from tests.lab.audit.tales import Tale

from linnet.core.ids import PeerId
from linnet.lab.audit.labels import node_labels
from linnet.lab.audit.sources import find_sources, look
from linnet.lab.errors import LabError
from linnet.trace.columns import ColumnTrace
from linnet.trace.records import Kind, Level, Record

ROW = '{"time":1.5,"node":"6e","counter":0,"kind":"online","events":1}'


def test_folders_are_searched_for_traces_and_nothing_else(tmp_path: Path) -> None:
    write_lines(tmp_path / ".local" / "a" / "trace" / "trace.jsonl", [ROW])
    home = tmp_path / ".local" / "a"
    write_lines(home / "trace" / "trace.jsonl.3", [ROW])
    (home / "received.jsonl").write_text("{}\n")
    ColumnTrace().write_parquet(home / "run.parquet")
    (home / "out").mkdir()
    (home / "out" / "part-0.parquet").write_bytes(b"")
    (home / "_temporary").mkdir()
    (home / "_temporary" / "part-0.parquet").write_bytes(b"")
    found = find_sources([home], home / "out")
    assert [file.path.name for file in found.lines] == ["trace.jsonl", "trace.jsonl.3"]
    assert [path.name for path in found.tables] == ["run.parquet"]
    assert len(found.paths) == 3
    twice = find_sources([home / "trace", home / "trace" / "trace.jsonl"])
    assert len(twice.lines) == 2, "a file that is named twice is read once"


def test_a_file_is_known_by_its_first_lines_and_its_last(tmp_path: Path) -> None:
    path = tmp_path / "any name"
    write_lines(path, [ROW], TORN)
    file = look(path)
    assert (file.level, file.node, file.torn) == (Level.FULL, "6e", TORN)
    path.write_text(f"{HEADER}\n".replace("full", "loss"))
    file = look(path)
    assert (file.level, file.node, file.torn) == (Level.LOSS, None, None)
    path.write_text(f"damaged\n{ROW}\n")
    assert look(path).node == "6e", "one bad line does not make it something else"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "no trace of a node"),
        ('{"id":1}\n{"id":2}\n', "no trace of a node"),
        (HEADER.replace('"linnet_trace":1', '"linnet_trace":9') + "\n", "newer Linnet"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: str, told: str) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text(content)
    with pytest.raises(LabError, match=told):
        find_sources([path])


def test_a_table_that_is_no_trace_is_told(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    path.write_text("text")
    with pytest.raises(LabError, match="no Parquet"):
        find_sources([tmp_path])
    pq.write_table(pa.table({"time": [1.5], "node": [b"n"]}), path)
    with pytest.raises(LabError, match="no column counter"):
        find_sources([path])
    whole = ColumnTrace().to_arrow()
    place = whole.schema.get_field_index("time")
    pq.write_table(whole.set_column(place, "time", pa.array([], pa.int64())), path)
    with pytest.raises(LabError, match="time is int64, not double"):
        find_sources([path])


def test_a_table_of_rows_that_lack_something_is_told(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    trace = ColumnTrace()
    for second in (1.0, 2.0, 3.0):
        trace.write(PeerId(b"n" * 32), Record(Kind.ONLINE), second)
    rows = trace.to_arrow()
    pq.write_table(rows, path)
    assert find_sources([path]).tables == (path,)
    loose = pa.schema([field.with_nullable(True) for field in rows.schema])
    lacking = [
        {**row, "kind": None if number == 1 else row["kind"]} for number, row in enumerate(rows.to_pylist())
    ]
    pq.write_table(pa.Table.from_pylist(lacking, loose), path)
    with pytest.raises(
        LabError, match=r"trace must have kind in every row, and 1 of 3 rows of .*run\.parquet"
    ):
        find_sources([path])


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="there is no"):
        find_sources([tmp_path / "nothing"])
    with pytest.raises(LabError, match="holds no trace"):
        find_sources([tmp_path])


def test_nodes_are_called_after_their_homes(tmp_path: Path) -> None:
    homes = Homes(tmp_path, Tale(1, steps=10).rows)
    assert node_labels(find_sources([homes.folder])) == homes.names
