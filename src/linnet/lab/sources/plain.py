"""Plain tables ``chat,ts,user,chars[,kind]``; the unit of ``ts`` is stated, never guessed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from linnet.lab.errors import LabError
from linnet.lab.sources.choices import Choices
from linnet.lab.sources.clocks import (
    NO_TIME,
    TIME_OUTSIDE,
    check_unit,
    from_iso,
    from_milliseconds,
    from_seconds,
    plausible,
    zone_of,
)
from linnet.lab.sources.delimited import Record, natural, records, sample_records
from linnet.lab.sources.pieces import Piece
from linnet.lab.sources.rows import KINDS, MOST_CHARS, Bad, Found, Numbered, Said

COLUMNS = ("chat", "ts", "user", "chars")
_UNITS = {"s": "Unix seconds", "ms": "Unix milliseconds", "iso": "times of ISO 8601"}


def inspect(pieces: Sequence[Piece], choices: Choices) -> list[Piece]:
    """Look at the beginning of each file; `LabError` if it is no such table, or of another unit."""
    if choices.unit not in _UNITS:
        raise LabError("the unit of ts is not known: give --unit s, --unit ms or --unit iso")
    zone = zone_of(choices.timezone)
    finest = "s"
    for piece in pieces:
        written = [row.fields[1] for row in sample_records(piece, COLUMNS)]
        sample = [(text, time_of(text, choices.unit, zone)) for text in written]
        check_unit(piece.shown, sample, _UNITS[choices.unit], "give the right --unit")
        if choices.unit == "ms" or any(ts is not None and ts % 1000 for _, ts in sample):
            finest = "ms"
    return [replace(piece, granularity=finest) for piece in pieces]


def time_of(text: str, unit: str, zone: ZoneInfo) -> int | None:
    """A time in milliseconds; None if it cannot be read in this unit."""
    match unit:
        case "s":
            return from_seconds(text)
        case "ms":
            return from_milliseconds(text)
        case _:
            return from_iso(text, zone)


def parse(lines: Iterator[Numbered], piece: Piece, choices: Choices) -> Iterator[Found]:
    """The messages of a table."""
    zone = zone_of(choices.timezone)
    for row in records(lines, COLUMNS, ("kind",)):
        yield _message(row, piece, choices.unit, zone) if isinstance(row, Record) else row


def _message(row: Record, piece: Piece, unit: str, zone: ZoneInfo) -> Found:
    chat, time, user, size, kind = row.fields
    ts, chars = time_of(time, unit, zone), natural(size, MOST_CHARS)
    if ts is None:
        return Bad(row.line, NO_TIME, row.content)
    if not plausible(ts):
        return Bad(row.line, TIME_OUTSIDE, row.content)
    if not (chat and user):
        return Bad(row.line, "it does not say in which chat, or who", row.content)
    if chars is None:
        return Bad(row.line, "chars is no count", row.content)
    if kind and kind not in KINDS:
        return Bad(row.line, "its kind is not known", row.content)
    return Said(row.line, (chat,), ts, user, chars, kind or "text", piece.granularity)
