"""Rooms as Element exports them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from linnet.lab.errors import LabError
from linnet.lab.sources.choices import Choices
from linnet.lab.sources.element import inspect, parse, pieces, read
from linnet.lab.sources.pieces import Piece
from linnet.lab.sources.rows import Bad, Found, Said

PIECE = Piece("r.json", "r.json", chat="r", granularity="ms")
NOW = 1_704_110_400_123


EDIT = {"m.relates_to": {"rel_type": "m.replace"}}
REPLY = {"m.relates_to": {"m.in_reply_to": {"event_id": "$0"}}}


def event(
    type: str = "m.room.message", related: dict[str, Any] | None = None, **words: str
) -> dict[str, Any]:
    content = {**words, **(related or {})}
    return {"type": type, "sender": "@ada:x", "origin_server_ts": NOW, "content": content, "event_id": "$1"}


def one(value: object) -> Found:
    [found] = parse([(3, value)], PIECE, Choices())
    return found


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (event(msgtype="m.text", body="hello"), "text", "hello"),
        (event(msgtype="m.emote", body="waves"), "text", "waves"),
        (event(msgtype="m.image", body="cat.jpg"), "image", ""),
        (event(msgtype="m.image", body="my cat", filename="cat.jpg"), "image", "my cat"),
        (event(msgtype="m.audio", body="a.ogg"), "audio", ""),
        (event(msgtype="m.video", body="a.mp4"), "video", ""),
        (event(msgtype="m.file", body="a.pdf"), "file", ""),
        (event("m.sticker", body="a cat"), "image", ""),
        (event("m.room.encrypted", algorithm="m.megolm"), "text", ""),
        (event("m.call.invite", version="1"), "notice", ""),
        (event() | {"unsigned": {"redacted_because": {}}}, "text", ""),
        (event("m.room.member", membership="join") | {"state_key": "@ada:x"}, "notice", ""),
        (event("m.room.topic", topic="tea") | {"state_key": ""}, "notice", ""),
        (event(related=REPLY, msgtype="m.text", body="> <@bea:x> how?\n> and why\n\nso"), "text", "so"),
        (event(msgtype="m.text", body="> quoted by hand"), "text", "> quoted by hand"),
    ],
)
def test_events_of_each_kind(value: object, kind: str, text: str) -> None:
    assert one(value) == Said(3, ("r",), NOW, "@ada:x", len(text), kind, "ms", text)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (event("m.reaction"), "left out: a reaction"),
        (event("m.room.redaction"), "left out: the deletion of another message"),
        (event(related=EDIT, body="x"), "left out: an edit of another message"),
        (event("org.example.thing"), "left out: an event that is no message"),
        ({"type": "m.room.message"}, "it is no event of Matrix"),
        (event() | {"origin_server_ts": 5}, "the time lies outside 1990 to 2100"),
    ],
)
def test_what_is_not_used_has_a_reason(value: object, reason: str) -> None:
    found = one(value)
    assert isinstance(found, Bad)
    assert (found.line, found.reason) == (3, reason)


def test_a_room_is_known_by_its_id(tmp_path: Path) -> None:
    path = tmp_path / "tea.json"
    room = {"room_name": "tea", "messages": [event(body="a"), event(body="b") | {"room_id": "!1:x"}]}
    path.write_text(json.dumps(room))
    [piece] = inspect(pieces([path]), Choices())
    chats = [each.chat for each in read(piece, Choices()) if isinstance(each, Said)]
    assert chats == [("tea",), ("!1:x",)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "has no list of events"),
        ('{"messages": []}', "has no list of events"),
        ('{"messages": [{}]}', "has no list of events"),
        (json.dumps({"messages": [event() | {"origin_server_ts": 1_704_110_400}]}), "look like seconds"),
    ],
)
def test_what_is_no_export_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(LabError, match=words):
        inspect(pieces([path]), Choices())
