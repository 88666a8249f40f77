"""Users to leave out, such as bots."""

from __future__ import annotations

from pathlib import Path

from linnet.lab.sources.delimited import Record, records, sample_records
from linnet.lab.sources.pieces import clean_lines, opened, plain_pieces

COLUMN = "user"


def read_users(path: Path) -> frozenset[str]:
    """The names in the column ``user`` of a table; `LabError` if it has none."""
    [piece] = plain_pieces([path])
    sample_records(piece, [COLUMN])
    with opened(piece) as file:
        rows = list(records(clean_lines(file, lambda bad: None), [COLUMN]))
    return frozenset(row.fields[0] for row in rows if isinstance(row, Record) and row.fields[0])
