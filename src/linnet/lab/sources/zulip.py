"""Zulip's messages as a table ``ts,stream_id,topic,user,chars``; a topic of a stream is a chat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from linnet.lab.sources.choices import Choices
from linnet.lab.sources.clocks import NO_TIME, TIME_OUTSIDE, check_unit, from_seconds, plausible
from linnet.lab.sources.delimited import Record, natural, records, sample_records
from linnet.lab.sources.pieces import Piece
from linnet.lab.sources.rows import MOST_CHARS, Bad, Found, Numbered, Said

COLUMNS = ("ts", "stream_id", "topic", "user", "chars")


def inspect(pieces: Sequence[Piece], choices: Choices) -> list[Piece]:
    """Look at the beginning of each file; `LabError` if it is no such table."""
    for piece in pieces:
        sample = [(row.fields[0], from_seconds(row.fields[0])) for row in sample_records(piece, COLUMNS)]
        check_unit(piece.shown, sample, "Unix seconds", "write seconds into the column ts")
    return list(pieces)


def parse(lines: Iterator[Numbered], piece: Piece, choices: Choices) -> Iterator[Found]:
    """The messages of a table."""
    for row in records(lines, COLUMNS):
        yield _message(row) if isinstance(row, Record) else row


def _message(row: Record) -> Found:
    time, stream, topic, user, size = row.fields
    ts, chars = from_seconds(time), natural(size, MOST_CHARS)
    if ts is None:
        return Bad(row.line, NO_TIME, row.content)
    if not plausible(ts):
        return Bad(row.line, TIME_OUTSIDE, row.content)
    if not (stream and topic and user):
        return Bad(row.line, "it does not say in which stream or topic, or who", row.content)
    if chars is None:
        return Bad(row.line, "chars is no count", row.content)
    return Said(row.line, (stream, topic), ts, user, chars, "text", "s")
