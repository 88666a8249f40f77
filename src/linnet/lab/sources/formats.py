"""The formats of messages: how the files of each are found, looked at, and read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from linnet.lab.sources import element, irc, own_trace, plain, slack, slack_csv, whatsapp, zulip
from linnet.lab.sources.choices import Choices
from linnet.lab.sources.pieces import Piece, clean_lines, opened, plain_pieces
from linnet.lab.sources.rows import Bad, Found, Numbered

Parser = Callable[[Iterator[Numbered], Piece, Choices], Iterator[Found]]


class Format(Struct, frozen=True):
    """A kind of source."""

    name: str
    pieces: Callable[[Sequence[Path]], list[Piece]]
    inspect: Callable[[Sequence[Piece], Choices], list[Piece]]
    """A look at the files before any work; what it tells goes into the pieces. `LabError` if it is wrong."""
    read: Callable[[Piece, Choices], Iterator[Found]]
    numbers_are_ids: bool = False
    """Chats whose names are numbers are ids of a program and say nothing of people."""


class LinesOf(Struct, frozen=True):
    """Reads a piece by a parser of lines."""

    parser: Parser
    encoding: str | None = None

    def __call__(self, piece: Piece, choices: Choices) -> Iterator[Found]:
        """What the parser finds, and the lines that it could not be given."""
        faults: list[Bad] = []
        with opened(piece) as file:
            lines = clean_lines(file, faults.append, self.encoding)
            for found in self.parser(lines, piece, choices):
                if faults:
                    yield from faults
                    faults.clear()
                yield found
        yield from faults


_ALL = (
    Format("zulip", plain_pieces, zulip.inspect, LinesOf(zulip.parse), numbers_are_ids=True),
    Format("whatsapp", whatsapp.pieces, whatsapp.inspect, LinesOf(whatsapp.parse)),
    Format("element", element.pieces, element.inspect, element.read),
    Format("slack", slack.pieces, slack.inspect, slack.read),
    Format("slack-csv", plain_pieces, slack_csv.inspect, LinesOf(slack_csv.parse), numbers_are_ids=True),
    Format("irc", irc.pieces, irc.inspect, LinesOf(irc.parse, irc.OLD_BYTES)),
    Format("csv", plain_pieces, plain.inspect, LinesOf(plain.parse), numbers_are_ids=True),
    Format("linnet", own_trace.pieces, own_trace.inspect, own_trace.read),
)
FORMATS: dict[str, Format] = {each.name: each for each in _ALL}
