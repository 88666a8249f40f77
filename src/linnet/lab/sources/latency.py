"""Matrices of latencies: square, or one pair in each row; in milliseconds, there and back or one way.

Half of a round trip is taken in microseconds; half a microsecond is rounded up. Regions keep their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from itertools import chain

from msgspec.structs import replace

from linnet.lab.errors import LabError
from linnet.lab.sources.choices import Choices
from linnet.lab.sources.delimited import SAMPLE, Record, header_of, records, sample_records, split_fields
from linnet.lab.sources.names import Names
from linnet.lab.sources.pieces import Piece, plain_pieces
from linnet.lab.sources.rows import LEFT_OUT, Bad, Entry, Numbered

PAIR = ("from", "to")
_OTHER_UNITS = ("_s", "_us", "_ns", "_sec", "_seconds")
_LONGEST_MS = 60_000
_NO_NUMBER = "its value is no number of milliseconds from 0 to 60000"
_EMPTY = LEFT_OUT + "a pair without a value"

pieces = plain_pieces


def inspect(pieces: Sequence[Piece], choices: Choices) -> list[Piece]:
    """Find the layout of each file; `LabError` if it cannot be known, or its meaning was not stated."""
    if choices.values not in ("rtt", "oneway"):
        raise LabError(
            "whether the values are for there and back or for one way is not known: "
            "give --values rtt or --values oneway"
        )
    if choices.columns and len(choices.columns) != 3:
        raise LabError("--columns needs three names: of the origin, of the target and of the value")
    return [replace(piece, columns=_layout(piece, choices)) for piece in pieces]


def _layout(piece: Piece, choices: Choices) -> tuple[str, ...]:
    """The three columns of a file with a pair in each row; none if it is square."""
    names = header_of(piece)
    if not choices.columns and not set(PAIR) <= set(names):
        _check_square(piece, names)
        return ()
    columns = choices.columns or (*PAIR, *(name for name in names if name not in PAIR))
    if len(columns) != 3:
        raise LabError(
            f"{piece.shown} has the columns {', '.join(names)[:200]}: "
            "say which are meant, such as --columns from,to,rtt_ms"
        )
    _check_name(piece, columns[2], choices.values)
    sample = sample_records(piece, columns)
    if all(_microseconds(row.fields[2], 1) is None for row in sample):
        raise LabError(f"{piece.shown}: {columns[2]} has no number in the first {len(sample)} rows")
    return columns


def _check_name(piece: Piece, name: str, values: str) -> None:
    """`LabError` if the name of the column says something else than what was stated."""
    said = name.lower()
    if ("rtt" in said and values == "oneway") or ("oneway" in said and values == "rtt"):
        raise LabError(f"{piece.shown}: the column {name} does not look like --values {values}")
    if said.endswith(_OTHER_UNITS):
        raise LabError(f"{piece.shown}: the column {name} does not look like milliseconds: convert it first")


def _check_square(piece: Piece, names: list[str]) -> None:
    targets = names[1:]
    if len(set(targets)) < len(targets):
        raise LabError(f"{piece.shown}: a region stands twice in its header")
    origins = [row.fields[0] for row in sample_records(piece, names[:1])]
    if len(targets) <= SAMPLE and set(origins) != set(targets):
        odd = sorted(set(origins) ^ set(targets))[0]
        raise LabError(
            f"{piece.shown} is neither square ({odd!r} is not both a row and a column) "
            "nor has it the columns from and to: name three by --columns"
        )


def parse(lines: Iterator[Numbered], piece: Piece, choices: Choices, names: Names) -> Iterator[Entry | Bad]:
    """One way in microseconds, for each pair."""
    parts = 2 if choices.values == "rtt" else 1
    if piece.columns:
        for row in records(lines, piece.columns):
            if isinstance(row, Record):
                origin, target, value = row.fields
                yield _pair(row.line, origin, target, value, parts)
            else:
                yield row
        return
    header = next(lines)
    regions = [name.strip() for name in split_fields(header[1]) or []]
    for row in records(chain([header], lines), regions):
        if isinstance(row, Record):
            for target, value in zip(regions[1:], row.fields[1:], strict=True):
                yield _pair(row.line, row.fields[0], target, value, parts)
        else:
            yield row


def _pair(line: int, origin: str, target: str, value: str, parts: int) -> Entry | Bad:
    content = f"{origin},{target},{value}"
    if value in ("", "-"):
        return Bad(line, _EMPTY, content)
    oneway = _microseconds(value, parts)
    if oneway is None:
        return Bad(line, _NO_NUMBER, content)
    if not (origin and target):
        return Bad(line, "it does not say from where, or to where", content)
    return Entry(line, (origin, target, oneway))


def _microseconds(text: str, parts: int) -> int | None:
    """Milliseconds in words to whole microseconds, divided by the parts; rounded once."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    if not value.is_finite() or not 0 <= value <= _LONGEST_MS:
        return None
    return int((value * 1000 / parts).to_integral_value(ROUND_HALF_UP))
