"""Slack's own export: a folder or zip file with ``CHANNEL/YYYY-MM-DD.json``; threads are in their channel."""

from __future__ import annotations

import html
import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path, PurePosixPath

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from linnet.lab.errors import LabError
from linnet.lab.sources.choices import Choices
from linnet.lab.sources.clocks import NO_TIME, TIME_OUTSIDE, check_unit, from_seconds, plausible
from linnet.lab.sources.json_items import json_items
from linnet.lab.sources.pieces import Piece, files_below, named_by_place, opened
from linnet.lab.sources.rows import LEFT_OUT, Bad, Found, Said, kind_of_media
from linnet.lab.sources.slack_kinds import BOT, granularity_of, kind_of, reason_of

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\.json")
_LOOKED_AT = 40


class SlackFile(Struct, frozen=True):
    """An attachment."""

    mimetype: str | None = None


class Message(Struct, frozen=True):
    """What is read of an item of a day."""

    ts: str
    type: str = "message"
    subtype: str = ""
    user: str | None = None
    bot_id: str | None = None
    username: str | None = None
    text: str | None = None
    files: tuple[SlackFile, ...] = ()


def pieces(paths: Sequence[Path]) -> list[Piece]:
    """The days of all channels; `LabError` if there are none."""
    found: list[Piece] = []
    for piece in named_by_place(files_below(paths, lambda path: _DAY.fullmatch(path.name) is not None)):
        if piece.path.endswith(".zip"):
            found += _days(piece)
        else:
            found.append(replace(piece, chat=Path(piece.path).parent.name))
    return found


def _days(piece: Piece) -> list[Piece]:
    try:
        with zipfile.ZipFile(piece.path) as archive:
            names = sorted(archive.namelist())
    except (OSError, zipfile.BadZipFile) as error:
        raise LabError(f"{piece.shown} is no zip file that can be read: {error}") from error
    days = [PurePosixPath(name) for name in names if _DAY.fullmatch(PurePosixPath(name).name)]
    days = [day for day in days if day.parent.name]
    if not days:
        raise LabError(f"{piece.shown} has no file CHANNEL/YYYY-MM-DD.json: is it an export of Slack?")
    shown = piece.shown
    return [replace(piece, member=str(day), shown=f"{shown}/{day}", chat=day.parent.name) for day in days]


def inspect(pieces: Sequence[Piece], choices: Choices) -> list[Piece]:
    """Look at some of the days; `LabError` if they are no lists of messages."""
    written: list[str] = []
    step = max(1, len(pieces) // _LOOKED_AT)
    for piece in pieces[::step]:
        found = list(islice(_items(piece), _LOOKED_AT))
        messages = [each for each in (_message(item) for _, item in _good(found)) if each is not None]
        if found and not messages:
            raise LabError(f"{piece.shown} is no list of Slack's messages")
        sample = [(each.ts, from_seconds(each.ts)) for each in messages]
        check_unit(piece.shown, sample, "Unix seconds", "is it an export of Slack?")
        written += [each.ts for each in messages]
    return [replace(piece, granularity=granularity_of(written)) for piece in pieces]


def _good(found: Iterable[tuple[int, object] | Bad]) -> list[tuple[int, object]]:
    return [(each[0], each[1]) for each in found if not isinstance(each, Bad)]


def _items(piece: Piece) -> Iterator[tuple[int, object] | Bad]:
    with opened(piece) as file, io.TextIOWrapper(file, "utf-8-sig") as text:
        yield from json_items(text)


def read(piece: Piece, choices: Choices) -> Iterator[Found]:
    """The messages of a day."""
    yield from parse(_items(piece), piece, choices)


def parse(items: Iterable[tuple[int, object] | Bad], piece: Piece, choices: Choices) -> Iterator[Found]:
    """What the items of a day come to."""
    for item in items:
        if isinstance(item, Bad):
            yield item
            continue
        line, value = item
        message = _message(value)
        if message is None:
            yield Bad(line, "it is no message of Slack", str(value))
        else:
            yield _said(line, message, piece, choices)


def _message(value: object) -> Message | None:
    try:
        return msgspec.convert(value, Message)
    except msgspec.ValidationError:
        return None


def _said(line: int, message: Message, piece: Piece, choices: Choices) -> Found:
    text = html.unescape(message.text or "")
    ts, kind = from_seconds(message.ts), kind_of(message.subtype)
    user = message.user or message.bot_id or message.username or ""
    if ts is None:
        return Bad(line, NO_TIME, text)
    if not plausible(ts):
        return Bad(line, TIME_OUTSIDE, text)
    if message.type != "message":
        return Bad(line, LEFT_OUT + "it is no message", text)
    if kind is None:
        return Bad(line, reason_of(message.subtype), text)
    if choices.without_bots and (message.bot_id or message.subtype == "bot_message"):
        return Bad(line, BOT, text)
    if not user and kind != "notice":
        return Bad(line, "it does not say who", text)
    if message.subtype == "tombstone":
        text = ""
    if message.files and kind != "notice":
        kind = kind_of_media(message.files[0].mimetype or "")
    return Said(line, (piece.chat,), ts, user, len(text), kind, piece.granularity, text)
