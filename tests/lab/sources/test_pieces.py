"""Files are found, named by their place, and read line by line."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path

import pytest

from linnet.lab.errors import LabError
from linnet.lab.sources import pieces
from linnet.lab.sources.pieces import clean_lines, files_below, opened, origins_of, plain_pieces
from linnet.lab.sources.rows import Bad


def test_a_piece_is_named_from_the_folder_in_common(tmp_path: Path) -> None:
    for name in ("a/x.csv", "b/x.csv"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("1")
    both = plain_pieces([tmp_path / "a/x.csv", tmp_path / "b/x.csv"])
    assert [piece.shown for piece in both] == ["a/x.csv", "b/x.csv"]
    assert [piece.shown for piece in plain_pieces([tmp_path / "a/x.csv"])] == ["x.csv"]


def test_what_is_not_there_empty_twice_or_a_folder_is_refused(tmp_path: Path) -> None:
    empty, full = tmp_path / "empty", tmp_path / "full"
    empty.touch()
    full.write_text("1")
    for paths, words in (
        ([tmp_path / "no"], "there is no"),
        ([empty], "is empty"),
        ([tmp_path], "is a folder"),
        ([full, tmp_path / "." / "full"], "twice"),
        ([], "no file"),
    ):
        with pytest.raises(LabError, match=words):
            plain_pieces(paths)


def test_folders_give_what_is_wanted_in_order(tmp_path: Path) -> None:
    for name in ("b.log", "a.log", "c.txt"):
        (tmp_path / name).write_text("1")
    found = files_below([tmp_path], lambda path: path.suffix == ".log")
    assert [path.name for path in found] == ["a.log", "b.log"]
    with pytest.raises(LabError, match="has no file"):
        files_below([tmp_path], lambda path: False)


def test_origins_know_content_and_not_place(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x").write_text("same")
    assert origins_of(plain_pieces([tmp_path / "a/x"])) == origins_of(plain_pieces([tmp_path / "b/x"]))


def test_a_torn_archive_is_refused_before_any_work(tmp_path: Path) -> None:
    torn = tmp_path / "torn.gz"
    torn.write_bytes(gzip.compress(b"line\n" * 1000)[:-20])
    with pytest.raises(LabError, match="cannot be read to its end"):
        origins_of(plain_pieces([torn]))
    no_zip = tmp_path / "no.zip"
    no_zip.write_bytes(b"PK")
    with pytest.raises(LabError, match="cannot be read to its end"):
        origins_of(plain_pieces([no_zip]))


def test_packed_files_are_unpacked(tmp_path: Path) -> None:
    packed = tmp_path / "x.gz"
    packed.write_bytes(gzip.compress(b"in gzip"))
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("inner", "in zip")
    with opened(pieces.Piece(str(packed), "x.gz")) as file:
        assert file.read() == b"in gzip"
    with opened(pieces.Piece(str(tmp_path / "x.zip"), "x.zip", "inner")) as file:
        assert file.read() == b"in zip"


def test_lines_have_numbers_and_faults_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "LONGEST_LINE", 10)
    faults: list[Bad] = []
    content = b"\xef\xbb\xbfone\r\n\xff\xfe\n" + b"x" * 25 + b"\n\nlast"
    assert list(clean_lines(io.BytesIO(content), faults.append)) == [(1, "one"), (4, ""), (5, "last")]
    assert [(bad.line, bad.reason) for bad in faults] == [
        (2, "the line is not UTF-8"),
        (3, "the line is too long"),
    ]


def test_old_bytes_can_be_read_as_such() -> None:
    faults: list[Bad] = []
    lines = clean_lines(io.BytesIO(b"caf\xe9\n\xc3\xa9\n"), faults.append, "latin-1")
    assert list(lines) == [(1, "café"), (2, "é")]
    assert faults == []
