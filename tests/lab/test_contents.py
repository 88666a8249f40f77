"""What lies in the folder of a table."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from linnet.lab import contents
from linnet.lab.contents import Part, check_grain, check_nulls, data_files, parts_of
from linnet.lab.errors import LabError
from linnet.lab.tables import Table

KNOWN = Table("known", 1, "a BIGINT NOT NULL, b BINARY, tags ARRAY<INT> NOT NULL", ("a", "b"))
COLUMNS = pa.schema([("a", pa.int64()), ("b", pa.binary()), ("tags", pa.list_(pa.int32()))])

Row = dict[str, object]


def row(a: int | None, b: bytes | None = b"x", tags: tuple[int | None, ...] | None = (1, None)) -> Row:
    return {"a": a, "b": b, "tags": tags}


def write(path: Path, *rows: Row) -> Path:
    pq.write_table(pa.Table.from_pylist(list(rows), COLUMNS), path)
    return path


def test_every_file_with_rows_is_known_by_its_bytes(tmp_path: Path) -> None:
    second, first = write(tmp_path / "p1.parquet", row(1), row(2)), write(tmp_path / "p0.parquet")
    for name in ("_manifest.json", "_SUCCESS", ".p0.parquet.crc", "_common.parquet", "notes.txt"):
        (tmp_path / name).write_text("no rows")
    assert data_files(tmp_path) == [first, second]
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (first, second)]
    assert parts_of(tmp_path) == (Part("p0.parquet", 0, digests[0]), Part("p1.parquet", 2, digests[1]))


def test_a_file_that_is_cut_off_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "p0.parquet", row(1))
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(LabError, match=r"p0\.parquet is no whole Parquet file"):
        parts_of(tmp_path)


@pytest.mark.parametrize("missing", ["a", "tags"])
def test_a_value_that_must_be_there_is_missed(tmp_path: Path, missing: str) -> None:
    path = write(tmp_path / "p.parquet", row(1, None), row(2), row(3) | {missing: None})
    check_nulls([path], KNOWN, [name for name in ("a", "tags") if name != missing])
    with pytest.raises(LabError, match=rf"known must have {missing} in every row, and 1 of 3 rows"):
        check_nulls([path], KNOWN, ["a", "tags"])


def test_a_column_that_must_be_there_is_missed(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="has no column c"):
        check_nulls([write(tmp_path / "p.parquet", row(1))], KNOWN, ["c"])


def test_files_that_count_no_missing_values_are_read(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    pq.write_table(pa.Table.from_pylist([row(1), row(None)], COLUMNS), path, write_statistics=False)
    with pytest.raises(LabError, match="1 of 2 rows"):
        check_nulls([path], KNOWN, ["a"])


def elsewhere() -> None:
    pytest.fail("few rows are compared here")


def test_a_row_has_its_name_for_itself_over_all_files(tmp_path: Path) -> None:
    write(tmp_path / "p0.parquet", row(1), row(1, b"y"), row(1, None))
    write(tmp_path / "p1.parquet", row(2), row(2, None))
    check_grain(tmp_path, KNOWN, 5, elsewhere)
    write(tmp_path / "p2.parquet", row(1, b"y"))
    with pytest.raises(LabError, match=r"one row for each a, b, and .* has several for a 1, b 79:"):
        check_grain(tmp_path, KNOWN, 6, elsewhere)
    (tmp_path / "p2.parquet").unlink()
    write(tmp_path / "p3.parquet", row(2, None))
    with pytest.raises(LabError, match="several for a 2, b None"):
        check_grain(tmp_path, KNOWN, 6, elsewhere)


def test_rows_without_names_may_repeat(tmp_path: Path) -> None:
    write(tmp_path / "p0.parquet", row(1), row(1))
    check_grain(tmp_path, Table("any", 1, KNOWN.columns, ()), 2, elsewhere)


def test_many_rows_are_compared_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "HERE", 2)
    write(tmp_path / "p0.parquet", row(1), row(1), row(3))
    check_grain(tmp_path, KNOWN, 3, lambda: None)
    with pytest.raises(LabError, match="several for a 1, b None"):
        check_grain(tmp_path, KNOWN, 3, lambda: (1, None))
