"""Slack's messages as a table ``ts,channel,user,kind,chars,thread_ts``; a thread belongs to its channel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from linnet.lab.sources.choices import Choices
from linnet.lab.sources.clocks import NO_TIME, TIME_OUTSIDE, check_unit, from_seconds, plausible
from linnet.lab.sources.delimited import Record, natural, records, sample_records
from linnet.lab.sources.pieces import Piece
from linnet.lab.sources.rows import MOST_CHARS, Bad, Found, Numbered, Said
from linnet.lab.sources.slack_kinds import BOT, granularity_of, kind_of, reason_of

COLUMNS = ("ts", "channel", "user", "kind", "chars")


def inspect(pieces: Sequence[Piece], choices: Choices) -> list[Piece]:
    """Look at the beginning of each file; `LabError` if it is no such table."""
    written: list[str] = []
    for piece in pieces:
        times = [row.fields[0] for row in sample_records(piece, COLUMNS)]
        sample = [(text, from_seconds(text)) for text in times]
        check_unit(piece.shown, sample, "Unix seconds", "write seconds into the column ts")
        written += times
    return [replace(piece, granularity=granularity_of(written)) for piece in pieces]


def parse(lines: Iterator[Numbered], piece: Piece, choices: Choices) -> Iterator[Found]:
    """The messages of a table."""
    for row in records(lines, COLUMNS):
        yield _message(row, piece, choices) if isinstance(row, Record) else row


def _message(row: Record, piece: Piece, choices: Choices) -> Found:
    time, channel, user, subtype, size = row.fields
    ts, chars, kind = from_seconds(time), natural(size, MOST_CHARS), kind_of(subtype)
    if ts is None:
        return Bad(row.line, NO_TIME, row.content)
    if not plausible(ts):
        return Bad(row.line, TIME_OUTSIDE, row.content)
    if kind is None:
        return Bad(row.line, reason_of(subtype), row.content)
    if choices.without_bots and subtype == "bot_message":
        return Bad(row.line, BOT, row.content)
    if not channel or not (user or kind == "notice"):
        return Bad(row.line, "it does not say in which channel, or who", row.content)
    if chars is None:
        return Bad(row.line, "chars is no count", row.content)
    return Said(row.line, (channel,), ts, user, chars, kind, piece.granularity)
