"""Who subscribes to what: ``user<TAB>topic topic …`` in each line, or a table with a pair in each row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from linnet.lab.errors import LabError
from linnet.lab.sources.choices import Choices
from linnet.lab.sources.delimited import header_of, records, sample_records
from linnet.lab.sources.names import Names
from linnet.lab.sources.pieces import Piece, clean_lines, opened, plain_pieces
from linnet.lab.sources.rows import LEFT_OUT, Bad, Entry, Numbered

COLUMNS = ("subscriber", "topic")
REPEATED = LEFT_OUT + "the same subscription again"
NO_PAIR = "it is not a user, a tab and topics"

pieces = plain_pieces


def inspect(pieces: Sequence[Piece], choices: Choices) -> list[Piece]:
    """Find the layout of each file; `LabError` if it is of neither kind."""
    if choices.columns and len(choices.columns) != len(COLUMNS):
        raise LabError("--columns needs two names: of the subscriber and of the topic")
    return [replace(piece, columns=_layout(piece, choices)) for piece in pieces]


def _layout(piece: Piece, choices: Choices) -> tuple[str, ...]:
    with opened(piece) as file:
        first = next(clean_lines(file, lambda bad: None), (0, ""))[1]
    if not choices.columns and "\t" in first:
        return ()
    names = header_of(piece)
    if not choices.columns and not set(COLUMNS) <= set(names):
        raise LabError(
            f"{piece.shown}: its lines are not USER<TAB>TOPIC TOPIC …, and it has not the columns subscriber "
            "and topic: name two by --columns"
        )
    columns = choices.columns or COLUMNS
    sample_records(piece, columns)
    return columns


def parse(lines: Iterator[Numbered], piece: Piece, choices: Choices, names: Names) -> Iterator[Entry | Bad]:
    """Each subscription once."""
    if piece.columns:
        for row in records(lines, piece.columns):
            if isinstance(row, Bad):
                yield row
            else:
                yield from _line(row.line, row.fields[0], [row.fields[1]], names, row.content)
        return
    for number, text in lines:
        if text.strip():
            user, _, topics = text.partition("\t")
            yield from _line(number, user.strip(), topics.split(), names, text)


def _line(line: int, user: str, topics: list[str], names: Names, text: str) -> Iterator[Entry | Bad]:
    if not user or not all(topics) or not topics:
        yield Bad(line, NO_PAIR, text)
        return
    once = dict.fromkeys(topics)
    for topic in once:
        yield Entry(line, (names.user(user), names.chat((topic,), numbers_are_ids=True)))
    for _ in range(len(topics) - len(once)):
        yield Bad(line, REPEATED, "")
