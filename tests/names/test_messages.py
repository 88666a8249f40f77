"""Messages come back as they went, and foreign ones are bounded."""

from __future__ import annotations

from typing import get_args

import pytest
from msgspec.structs import replace
from tests.names.people import DAY, NOW, PLACE_C, Z, place, zone_of
from tests.names.town import CODEC

from linnet.core.errors import MalformedMessage
from linnet.core.reasons import Reason
from linnet.names.block import SEALED_BYTES
from linnet.names.messages import AskRecord, NameMessage, PutAnswer, PutRecord, RecordIs

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
