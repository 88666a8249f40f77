"""The codec over a small union of its own; every real message is in tests/peer/test_messages.py."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct, msgpack

from linnet.core.errors import MalformedMessage
from linnet.core.limits import FRAME_BYTES
from linnet.core.reasons import Reason
from linnet.wire.codec import Codec, UnknownMessage


class Say(Struct, frozen=True, array_like=True, tag=1):
    word: Annotated[str, Meta(max_length=8)]
    times: Annotated[int, Meta(ge=0, le=9)] = 1


class Give(Struct, frozen=True, array_like=True, tag=200):
    thing: bytes


Both: TypeAlias = Say | Give
CODEC: Codec[Both] = Codec(Both)


@pytest.mark.parametrize(
    ("message", "raw"),
    [
        (Say("hi", 2), b"\x93\x01\xa2hi\x02"),
        (Give(b"x"), b"\x92\xcc\xc8\xc4\x01x"),
    ],
)
def test_a_message_is_an_array_behind_its_tag(message: Both, raw: bytes) -> None:
    assert CODEC.encode(message) == raw
    assert CODEC.decode(raw) == message


def test_a_newer_field_at_the_end_is_passed_over() -> None:
    assert CODEC.decode(msgpack.encode([1, "hi", 2, "a field of tomorrow"])) == Say("hi", 2)


def test_a_field_with_a_default_may_be_missing() -> None:
    assert CODEC.decode(msgpack.encode([1, "hi"])) == Say("hi", 1)


@pytest.mark.parametrize("tag", [0, 2, 127, 128, 199, 255, 256, 65_535])
@pytest.mark.parametrize("rest", [[], ["x"], [1, None, {"a": b"b"}], list(range(20))])
def test_a_tag_of_tomorrow_is_unknown_not_wrong(tag: int, rest: list[object]) -> None:
    with pytest.raises(UnknownMessage) as caught:
        CODEC.decode(msgpack.encode([tag, *rest]))
    assert caught.value.tag == tag
    assert caught.value.reason is Reason.UNSUPPORTED


def test_a_tag_behind_the_longest_array_head() -> None:
    with pytest.raises(UnknownMessage) as caught:
        CODEC.decode(b"\xdd\x00\x00\x00\x01\x07")
    assert caught.value.tag == 7


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x90",  # an array of nothing
        b"\x91",  # an array that ends before its tag
        b"\x91\xcc",  # a tag cut in two
        b"\x91\xcd\x00",
        b"\xdc\x00",
        b"\xdd\x00\x00",
        b"\x91\xce\xff\xff\xff\xff",  # larger than any tag can be
        b"\x91\xff",  # a tag below zero
        b"\x91\xa1x",  # a tag that is text
        b"\x80",  # a map
        b"\x01",  # a number
        b"\xc1",  # the byte that msgpack never uses
        b"\x92\x01\xa1\xff",  # text that is no UTF-8
        b"\x92\x01\xa9123456789",  # text that is too long
        b"\x93\x01\xa1x\x0a",  # a number that is too large
        b"\x93\x01\xa1x\x02\x00",  # a byte behind the message
        b"\x92\x01\xa5hi",  # text that ends early
        b"\x94\x01\xa1x\x02" + b"\x91" * 200_000,  # arrays in arrays in arrays
    ],
)
def test_wrong_bytes_are_malformed(raw: bytes) -> None:
    with pytest.raises(MalformedMessage) as caught:
        CODEC.decode(raw)
    assert caught.value.reason is Reason.MALFORMED
    assert type(caught.value) is MalformedMessage


@given(st.binary(max_size=200))
def test_arbitrary_bytes_raise_nothing_else(raw: bytes) -> None:
    try:
        message = CODEC.decode(raw)
    except MalformedMessage:
        return
    assert isinstance(message, Say | Give)


def test_the_largest_message_and_one_more_byte() -> None:
    raw = CODEC.encode(Give(bytes(FRAME_BYTES - 8)))
    assert len(raw) == FRAME_BYTES
    assert CODEC.decode(raw) == Give(bytes(FRAME_BYTES - 8))
    with pytest.raises(MalformedMessage) as caught:
        CODEC.decode(CODEC.encode(Give(bytes(FRAME_BYTES - 7))))
    assert caught.value.reason is Reason.TOO_LARGE


def test_the_limit_can_be_set() -> None:
    small: Codec[Both] = Codec(Both, limit=5)
    assert small.decode(b"\x92\x01\xa2hi") == Say("hi")
    with pytest.raises(MalformedMessage) as caught:
        small.decode(b"\x92\x01\xa3hiy")
    assert caught.value.reason is Reason.TOO_LARGE


def test_a_codec_of_a_single_type() -> None:
    only: Codec[Say] = Codec(Say)
    assert only.decode(b"\x92\x01\xa1x") == Say("x")
    with pytest.raises(UnknownMessage):
        only.decode(CODEC.encode(Give(b"")))
