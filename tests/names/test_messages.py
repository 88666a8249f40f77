"""Messages and commands come back as they went, foreign ones are bounded, and passwords are not printed."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest
from msgspec.structs import replace
from tests.names.people import DAY, NOW, PLACE_C, Z, person, place, zone_of
from tests.names.town import CODEC

from linnet.core.errors import MalformedMessage
from linnet.core.reasons import Reason
from linnet.names.commands import PublishName, RemoveName, ResolveName
from linnet.names.config import NamesConfig
from linnet.names.derivation import Password, stretch
from linnet.names.messages import AskRecord, NameMessage, PutAnswer, PutRecord, RecordIs
from linnet.names.records import SEALED_BYTES
from linnet.peer.interface import AnyCommand

BLOCK = zone_of("alice").publish("music", place(PLACE_C, Z), DAY, NOW).block
MESSAGES: list[NameMessage] = [
    PutRecord(1, BLOCK),
    PutAnswer(1, Reason.QUOTA),
    AskRecord(2, BLOCK.lookup),
    RecordIs(2, BLOCK.lookup, (BLOCK,) * 8, None),
]


@pytest.mark.parametrize("message", MESSAGES)
def test_messages_come_back_as_they_went(message: NameMessage) -> None:
    assert CODEC.decode(CODEC.encode(message)) == message


def test_tags_are_those_of_names() -> None:
    tags = [member.__struct_config__.tag for member in get_args(NameMessage)]
    assert tags == [110, 111, 112, 113]


@pytest.mark.parametrize(
    "message",
    [
        RecordIs(2, BLOCK.lookup, (BLOCK,) * 9, None),
        AskRecord(2, b"short"),
        PutRecord(-1, BLOCK),
        PutRecord(1, replace(BLOCK, sealed=bytes(SEALED_BYTES + 1))),
        PutRecord(1, replace(BLOCK, owner=b"")),
    ],
)
def test_what_is_too_much_is_no_message(message: NameMessage) -> None:
    with pytest.raises(MalformedMessage):
        CODEC.decode(CODEC.encode(message))


SECRET = stretch(Password("swordfish"), person("alice").author, "music")


@pytest.mark.parametrize(
    "command",
    [
        PublishName("music", stretched=SECRET),
        RemoveName("music", SECRET),
        ResolveName("music.alice", True, SECRET),
    ],
)
def test_a_password_does_not_show(command: AnyCommand) -> None:
    assert "music" in repr(command)
    assert "swordfish" not in repr(command)


def test_what_is_not_said_has_a_default() -> None:
    assert msgspec.convert({}, NamesConfig) == NamesConfig()


@pytest.mark.parametrize(
    "wrong", [{"depth": 0}, {"candidates": 9}, {"patience": 0.0}, {"lifetime": 1e9}, {"deep": 8}]
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, NamesConfig)
