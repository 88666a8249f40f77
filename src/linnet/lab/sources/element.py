"""Rooms of Matrix as Element exports them: an object whose ``messages`` is a list of events.

What was sent counts as sent: a message that was deleted later, or that could not be decrypted for the
export, is a text of unknown length. Edits, reactions and deletions are about other messages and left out.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from linnet.lab.errors import LabError
from linnet.lab.sources.choices import Choices
from linnet.lab.sources.clocks import TIME_OUTSIDE, check_unit, plausible
from linnet.lab.sources.delimited import SAMPLE
from linnet.lab.sources.json_items import json_items
from linnet.lab.sources.pieces import Piece, files_below, named_by_place, opened
from linnet.lab.sources.rows import LEFT_OUT, Bad, Found, Said

_KINDS = {"m.image": "image", "m.audio": "audio", "m.video": "video", "m.file": "file"}
_LEFT_OUT = {
    "m.reaction": LEFT_OUT + "a reaction",
    "m.room.redaction": LEFT_OUT + "the deletion of another message",
}
_EDIT = LEFT_OUT + "an edit of another message"
_OTHER = LEFT_OUT + "an event that is no message"


class Event(Struct, frozen=True):
    """What is read of an event."""

    type: str
    sender: str
    origin_server_ts: int
    content: dict[str, Any]
    room_id: str = ""
    state_key: str | UnsetType = UNSET
    unsigned: dict[str, Any] = {}


def pieces(paths: Sequence[Path]) -> list[Piece]:
    """The files of rooms; a room that does not say its id is known by its file."""
    found = named_by_place(files_below(paths, lambda path: path.suffix == ".json"))
    return [replace(piece, chat=piece.shown.removesuffix(".json"), granularity="ms") for piece in found]


def inspect(pieces: Sequence[Piece], choices: Choices) -> list[Piece]:
    """Look at the beginning of each room; `LabError` if it is none."""
    for piece in pieces:
        found = list(islice(_items(piece), SAMPLE))
        events = [_event(each[1]) for each in found if not isinstance(each, Bad)]
        times = [event.origin_server_ts for event in events if event is not None]
        if not times:
            raise LabError(f"{piece.shown} has no list of events: is it an export of Element, as JSON?")
        sample = [(str(ts), ts) for ts in times]
        check_unit(piece.shown, sample, "Unix milliseconds", "is it an export of Element?")
    return list(pieces)


def _items(piece: Piece) -> Iterator[tuple[int, object] | Bad]:
    with opened(piece) as file, io.TextIOWrapper(file, "utf-8-sig") as text:
        yield from json_items(text, "messages")


def read(piece: Piece, choices: Choices) -> Iterator[Found]:
    """The messages of a room."""
    yield from parse(_items(piece), piece, choices)


def parse(items: Iterable[tuple[int, object] | Bad], piece: Piece, choices: Choices) -> Iterator[Found]:
    """What the events of a room come to."""
    for item in items:
        if isinstance(item, Bad):
            yield item
            continue
        line, value = item
        event = _event(value)
        if event is None:
            yield Bad(line, "it is no event of Matrix", str(value))
        elif not plausible(event.origin_server_ts):
            yield Bad(line, TIME_OUTSIDE, str(value))
        else:
            yield _said(line, event, piece)


def _event(value: object) -> Event | None:
    try:
        return msgspec.convert(value, Event)
    except msgspec.ValidationError:
        return None


def _said(line: int, event: Event, piece: Piece) -> Found:
    kind, text = _kind_and_text(event)
    if kind.startswith(LEFT_OUT):
        return Bad(line, kind, text)
    chat = (event.room_id or piece.chat,)
    ts = event.origin_server_ts
    return Said(line, chat, ts, event.sender, len(text), kind, piece.granularity, text)


def _kind_and_text(event: Event) -> tuple[str, str]:
    """The kind and what was said; or why the event is left out."""
    content = event.content
    if event.state_key is not UNSET or event.type.startswith("m.call."):
        return "notice", ""
    if event.type in _LEFT_OUT:
        return _LEFT_OUT[event.type], ""
    relation = content.get("m.relates_to")
    relation = relation if isinstance(relation, dict) else {}
    if relation.get("rel_type") == "m.replace":
        return _EDIT, _text(content, "body")
    match event.type:
        case "m.room.message":
            kind = _KINDS.get(_text(content, "msgtype"), "text")
            body = _text(content, "body")
            if kind != "text":
                return kind, _caption(content, body)
            return kind, _without_quote(body) if "m.in_reply_to" in relation else body
        case "m.room.encrypted":
            return "text", ""
        case "m.sticker":
            return "image", ""
        case "m.poll.start" | "org.matrix.msc3381.poll.start":
            return "text", _question(content)
        case _:
            return _OTHER, ""


def _text(content: dict[str, Any], key: str) -> str:
    value = content.get(key)
    return value if isinstance(value, str) else ""


def _caption(content: dict[str, Any], body: str) -> str:
    """What was said to a picture; without a name of its own the file has the body for one."""
    name = _text(content, "filename")
    return body if name and name != body else ""


def _question(content: dict[str, Any]) -> str:
    """The fallback text of a poll, which has its question and answers."""
    return _text(content, "org.matrix.msc1767.text") or _text(content, "m.text") or _text(content, "body")


def _without_quote(body: str) -> str:
    """An answer without the quotation in front of it, which programs of older kinds put there."""
    lines = body.split("\n")
    quoted = next((number for number, line in enumerate(lines) if not line.startswith("> ")), len(lines))
    if quoted == 0:
        return body
    return "\n".join(lines[quoted:]).removeprefix("\n")
