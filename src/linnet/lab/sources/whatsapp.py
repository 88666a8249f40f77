"""A chat as WhatsApp exports it: text, a message in one or more lines, dates in the manner of the phone."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from linnet.lab.errors import LabError
from linnet.lab.sources.choices import Choices
from linnet.lab.sources.clocks import NO_TIME, TIME_OUTSIDE, plausible, zone_of
from linnet.lab.sources.pieces import Piece, clean_lines, files_below, named_by_place, opened
from linnet.lab.sources.rows import Bad, Found, Numbered, Said
from linnet.lab.sources.whatsapp_dates import ORDERS, Head, head_of, moment_of, order_of
from linnet.lab.sources.whatsapp_words import MARKS, is_deleted, media_kind, without_edit_mark

BEFORE_ANY = "no message begins before this line"
_LONGEST_NAME = 120
_QUOTES = frozenset('"“”„«»')
_STRIPPED = str.maketrans("", "", MARKS)


def pieces(paths: Sequence[Path]) -> list[Piece]:
    """The chats, each a file of text or a zip file that has one; a chat is named by its file."""
    found: list[Piece] = []
    for piece in named_by_place(files_below(paths, lambda path: path.suffix in (".txt", ".zip"))):
        if piece.path.endswith(".zip"):
            found.append(_inside(piece))
        else:
            found.append(replace(piece, chat=piece.shown.removesuffix(".gz").removesuffix(".txt")))
    return found


def _inside(piece: Piece) -> Piece:
    try:
        with zipfile.ZipFile(piece.path) as archive:
            names = [name for name in archive.namelist() if PurePosixPath(name).suffix == ".txt"]
    except (OSError, zipfile.BadZipFile) as error:
        raise LabError(f"{piece.shown} is no zip file that can be read: {error}") from error
    if len(names) != 1:
        raise LabError(f"{piece.shown} has {len(names)} files .txt, not one: unpack it and name the chat")
    return replace(piece, member=names[0], chat=piece.shown.removesuffix(".zip"))


def inspect(pieces: Sequence[Piece], choices: Choices) -> list[Piece]:
    """Read the dates of each file; `LabError` if their order cannot be known."""
    zone_of(choices.timezone)
    if choices.dates and choices.dates not in ORDERS:
        raise LabError(f"--dates {choices.dates!r}: write dmy, mdy or ymd")
    return [_inspected(piece, choices) for piece in pieces]


def _inspected(piece: Piece, choices: Choices) -> Piece:
    with opened(piece) as file:
        heads = (head_of(line) for _, line in clean_lines(file, lambda bad: None))
        order, granularity = order_of(piece.shown, (head for head in heads if head), choices.dates)
    return replace(piece, order=order, granularity=granularity)


def parse(lines: Iterator[Numbered], piece: Piece, choices: Choices) -> Iterator[Found]:
    """The messages of a chat."""
    zone = zone_of(choices.timezone)
    begun: tuple[int, Head] | None = None
    more: list[str] = []
    for number, line in lines:
        head = head_of(line)
        if head is None:
            if begun is not None:
                more.append(line)
            elif line.strip(MARKS).strip():
                yield Bad(number, BEFORE_ANY, line)
            continue
        if begun is not None:
            yield _message(*begun, more, piece, zone)
        begun, more = (number, head), []
    if begun is not None:
        yield _message(*begun, more, piece, zone)


def _message(line: int, head: Head, more: list[str], piece: Piece, zone: ZoneInfo) -> Found:
    ts = moment_of(head, piece.order, zone)
    whole = "\n".join([head.rest, *more])
    if ts is None:
        return Bad(line, NO_TIME, whole)
    if not plausible(ts):
        return Bad(line, TIME_OUTSIDE, whole)
    name, said = _name_and_text(head)
    chat, granularity = (piece.chat,), piece.granularity
    if name is None:
        return Said(line, chat, ts, "", len(whole), "notice", granularity, whole)
    kind, text = _kind_and_text("\n".join([said, *more]), head.bracketed)
    return Said(line, chat, ts, name, len(text), kind, granularity, text)


def _name_and_text(head: Head) -> tuple[str | None, str]:
    """Who said what; nobody if WhatsApp itself says it, such as that somebody joined."""
    before, colon, text = head.rest.partition(": ")
    if not colon:
        before, colon, text = head.rest.partition(" : ")
    if not colon and head.rest.endswith(":"):
        before, colon, text = head.rest[:-1], ":", ""
    name = before.translate(_STRIPPED).removeprefix("~").strip()
    # A changed subject is quoted, and may have a colon in it; a name has no quotation marks.
    if not colon or not name or len(name) > _LONGEST_NAME or _QUOTES.intersection(before):
        return None, head.rest
    return name, text


def _kind_and_text(text: str, bracketed: bool) -> tuple[str, str]:
    """The kind of a message and what was said; of media, the caption."""
    first, _, caption = text.partition("\n")
    own_words = first.startswith("\u200e")
    line = first.translate(_STRIPPED).strip()
    kind = media_kind(line, own_words)
    if kind is not None:
        return kind, caption
    text = without_edit_mark(text.lstrip(MARKS))
    if is_deleted(text.translate(_STRIPPED).strip()):
        return "text", ""
    # Telephones of Apple put a mark in front of what WhatsApp itself says in somebody's name.
    return ("notice" if bracketed and own_words else "text"), text
