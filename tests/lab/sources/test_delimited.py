"""Tables in text."""

from __future__ import annotations

from pathlib import Path

import pytest

from linnet.lab.errors import LabError
from linnet.lab.sources.delimited import (
    BAD_QUOTES,
    NOT_ALL_FIELDS,
    Record,
    natural,
    records,
    sample_records,
    split_fields,
)
from linnet.lab.sources.pieces import Piece
from linnet.lab.sources.rows import Bad


def numbered(text: str) -> list[tuple[int, str]]:
    return list(enumerate(text.splitlines(), 1))


def piece(path: Path, text: str) -> Piece:
    path.write_text(text)
    return Piece(str(path), path.name)


def test_columns_are_found_by_name_and_quotes_are_undone() -> None:
    text = 'b, a,c\n1,2,3\n\n"x,y",2,\n'
    assert list(records(iter(numbered(text)), ["a", "b"], ["c", "d"])) == [
        Record(2, ("2", "1", "3", ""), "1,2,3"),
        Record(4, ("2", "x,y", "", ""), '"x,y",2,'),
    ]


def test_rows_that_do_not_fit_are_bad() -> None:
    text = 'a,b\n1\n1,2,3\n"1,2\n'
    assert list(records(iter(numbered(text)), ["a"])) == [
        Bad(2, NOT_ALL_FIELDS, "1"),
        Bad(3, NOT_ALL_FIELDS, "1,2,3"),
        Bad(4, BAD_QUOTES, '"1,2'),
    ]
    assert split_fields('"a"x,b') is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,c\n1,2\n", "has no column b: its header is a,c, and a,b are needed"),
        ("a,b\n", "a header and no rows"),
        ("a,b\n1\n2\n", "none of the first 2 rows has the 2 fields"),
        ("\n", "no header"),
    ],
)
def test_a_wrong_table_is_refused_before_any_work(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(LabError, match=words):
        sample_records(piece(tmp_path / "t.csv", text), ["a", "b"])


def test_counts() -> None:
    assert natural("12", 12) == 12
    assert [natural(text, 12) for text in ("13", "-1", "1.0", "", "٣", "9" * 30)] == [None] * 6
