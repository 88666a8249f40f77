"""Tables in text: a header, then one row in each line."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from linnet.lab.errors import LabError
from linnet.lab.sources.pieces import Piece, clean_lines, opened
from linnet.lab.sources.rows import Bad, Numbered

SAMPLE = 1000
"""Rows at the beginning of a file that are looked at before any work."""

NOT_ALL_FIELDS = "it has not as many fields as the header"
BAD_QUOTES = "its quotation marks do not match"


class Record(NamedTuple):
    """The wanted fields of a row, in the order in which they were asked for; absent ones are empty."""

    line: int
    fields: tuple[str, ...]
    content: str


def split_fields(line: str) -> list[str] | None:
    """The fields of a line; None if its quotation marks do not match."""
    if '"' not in line:
        return line.split(",")
    try:
        return next(csv.reader([line], strict=True))
    except (csv.Error, StopIteration):
        return None


def records(
    lines: Iterator[Numbered], wanted: Sequence[str], optional: Sequence[str] = ()
) -> Iterator[Record | Bad]:
    """The rows below the header. Empty lines are no rows."""
    header = split_fields(next(lines, (0, ""))[1]) or []
    names = [name.strip() for name in header]
    places = [names.index(name) for name in wanted]
    places += [names.index(name) if name in names else -1 for name in optional]
    width = len(names)
    for number, line in lines:
        if not line or line.isspace():
            continue
        fields = split_fields(line)
        if fields is None:
            yield Bad(number, BAD_QUOTES, line)
        elif len(fields) != width:
            yield Bad(number, NOT_ALL_FIELDS, line)
        else:
            chosen = tuple("" if place < 0 else fields[place].strip() for place in places)
            yield Record(number, chosen, line)


def header_of(piece: Piece) -> list[str]:
    """The names of the columns; `LabError` if the first line does not have any."""
    with opened(piece) as file:
        first = next(clean_lines(file, lambda bad: None), (0, ""))
    names = [name.strip() for name in split_fields(first[1]) or []]
    if first[0] != 1 or not any(names):
        raise LabError(f"{piece.shown}: the first line is no header")
    return names


def sample_records(piece: Piece, wanted: Sequence[str], optional: Sequence[str] = ()) -> list[Record]:
    """The first good rows of a file; `LabError` if a column is missing, or there is no row at all."""
    names = header_of(piece)
    missing = [name for name in wanted if name not in names]
    if missing:
        raise LabError(
            f"{piece.shown} has no column {', '.join(missing)}: its header is {','.join(names)[:200]}, "
            f"and {','.join(wanted)} are needed"
        )
    with opened(piece) as file:
        found = list(islice(records(clean_lines(file, lambda bad: None), wanted, optional), SAMPLE))
    if not found:
        raise LabError(f"{piece.shown} has a header and no rows")
    good = [each for each in found if isinstance(each, Record)]
    if not good:
        raise LabError(
            f"{piece.shown}: none of the first {len(found)} rows has the {len(names)} fields of the header"
        )
    return good


def natural(text: str, most: int) -> int | None:
    """A whole number from 0 to `most`; None if it is none."""
    if not (text.isascii() and text.isdecimal()) or len(text) > 18:
        return None
    value = int(text)
    return value if value <= most else None
