"""Logs of IRC: a channel in one file, or in one for each day that has the day in its name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime
from itertools import islice
from pathlib import Path, PurePosixPath
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from linnet.lab.errors import LabError
from linnet.lab.sources.choices import Choices
from linnet.lab.sources.clocks import NO_TIME, TIME_OUTSIDE, milliseconds, plausible, zone_of
from linnet.lab.sources.delimited import SAMPLE
from linnet.lab.sources.irc_lines import Line, day_line, file_day, line_of, spoken
from linnet.lab.sources.pieces import Piece, clean_lines, files_below, named_by_place, opened
from linnet.lab.sources.rows import Bad, Found, Numbered, Said

OLD_BYTES = "latin-1"
"""What older clients wrote; a line that is no UTF-8 is read so."""

_ENDINGS = (".gz", ".log", ".txt", ".weechatlog")
NO_DAY = "its day is not known"


def pieces(paths: Sequence[Path]) -> list[Piece]:
    """The logs; the days of a channel are one chat, named by the files without their dates."""
    found = named_by_place(files_below(paths, lambda path: PurePosixPath(path.name).suffix in _ENDINGS))
    return [_named(piece) for piece in found]


def _named(piece: Piece) -> Piece:
    name = PurePosixPath(piece.shown).name
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    day, name = file_day(name)
    folder = PurePosixPath(piece.shown).parent
    if not name:
        # A folder for each channel and a file for each day.
        name = folder.name or Path(piece.path).parent.name
        folder = folder.parent
    return replace(piece, chat=(folder / name).as_posix(), order=day.isoformat() if day else "")


def inspect(pieces: Sequence[Piece], choices: Choices) -> list[Piece]:
    """Look at the beginning of each log; `LabError` if it is none, or its days are nowhere."""
    zone_of(choices.timezone)
    coarse = False
    for piece in pieces:
        lines = _beginning(piece)
        timed = [line for line in (line_of(text) for text in lines) if line is not None]
        if not timed:
            raise LabError(f"{piece.shown}: no line begins with a time of day: is it a log of IRC?")
        coarse = coarse or any(line.second is None for line in timed)
        known = piece.order or any(line.day for line in timed) or any(map(day_line, lines))
        if not known:
            raise LabError(
                f"{piece.shown}: its day is neither in its lines nor in its name: "
                "put it into the name, such as channel-2024-01-31.log"
            )
    return [replace(piece, granularity="min" if coarse else "s") for piece in pieces]


def _beginning(piece: Piece) -> list[str]:
    with opened(piece) as file:
        return [text for _, text in islice(clean_lines(file, lambda bad: None, OLD_BYTES), SAMPLE)]


def parse(lines: Iterator[Numbered], piece: Piece, choices: Choices) -> Iterator[Found]:
    """The messages of a log."""
    zone = zone_of(choices.timezone)
    day = date.fromisoformat(piece.order) if piece.order else None
    for number, text in lines:
        begun = day_line(text)
        if begun is not None:
            day = begun
            continue
        if not text.strip():
            continue
        line = line_of(text)
        if line is None:
            yield Bad(number, "it does not begin with a time", text)
            continue
        if line.day is not None:
            day = line.day
        yield _said(number, line, day, piece, zone)


def _said(number: int, line: Line, day: date | None, piece: Piece, zone: ZoneInfo) -> Found:
    words = spoken(line.rest)
    if words is None:
        return Bad(number, "who says it is in no manner that is known", line.rest)
    if day is None:
        return Bad(number, NO_DAY, line.rest)
    ts = _moment(line, day, zone)
    if ts is None:
        return Bad(number, NO_TIME, line.rest)
    if not plausible(ts):
        return Bad(number, TIME_OUTSIDE, line.rest)
    nick, text, kind = words
    return Said(number, (piece.chat,), ts, nick, len(text), kind, piece.granularity, text)


def _moment(line: Line, day: date, zone: ZoneInfo) -> int | None:
    month, of_month = line.month_day or (day.month, day.day)
    try:
        moment = datetime(day.year, month, of_month, line.hour, line.minute, line.second or 0, tzinfo=zone)
    except ValueError:
        return None
    return milliseconds(moment)
