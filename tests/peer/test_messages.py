"""Every message of every protocol: its bytes, and what hostile bytes come to.

`make soak` tries thousands of examples where a plain run tries hundreds.
"""

from __future__ import annotations

import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linnet.core.errors import MalformedMessage
from linnet.core.hello import Hello
from linnet.core.limits import FRAME_BYTES
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.delivery.messages import DeliveryMessage
from linnet.overlay.messages import OverlayMessage
from linnet.peer.messages import CODEC, FIRST_CODEC, STANDARD, LinkMessage
from linnet.testing.strategies import members, values
from linnet.wire.codec import Codec, UnknownMessage

KINDS = list(STANDARD.protocol_of)
messages = st.sampled_from(KINDS).flatmap(values)
FUZZ = settings(max_examples=3 * settings().max_examples)
EACH = settings(max_examples=settings().max_examples // 4)
"""For each kind of message: there are many."""
NAMED = {kind.__name__: kind for kind in KINDS}


def tag_of(kind: Any) -> int:  # noqa: ANN401 - a struct type, which mypy does not know as one
    tag = kind.__struct_config__.tag
    assert isinstance(tag, int)
    return tag


@pytest.mark.parametrize("kind", NAMED)
@EACH
@given(data=st.data())
def test_every_message_survives_the_wire(kind: str, data: st.DataObject) -> None:
    message = data.draw(values(NAMED[kind]))
    raw = CODEC.encode(message)
    assert CODEC.decode(raw) == message
    assert CODEC.encode(CODEC.decode(raw)) == raw


@given(values(Hello))
def test_the_first_message_survives_the_wire(hello: Hello) -> None:
    assert FIRST_CODEC.decode(FIRST_CODEC.encode(hello)) == hello


def test_tags_are_unique_and_in_the_range_of_their_part() -> None:
    tags = [tag_of(kind) for kind in (Hello, *KINDS)]
    assert len(set(tags)) == len(tags)
    assert tag_of(Hello) == 0
    assert all(1 <= tag_of(kind) <= 9 for kind in members(LinkMessage))
    assert all(10 <= tag_of(kind) <= 29 for kind in members(OverlayMessage))
    assert all(30 <= tag_of(kind) <= 49 for kind in members(DeliveryMessage))
    assert set(STANDARD.bulk) <= set(KINDS)


@FUZZ
@given(st.binary(max_size=300))
def test_arbitrary_bytes_raise_nothing_but_malformed(raw: bytes) -> None:
    for codec in (CODEC, FIRST_CODEC):
        assert_one_error(codec, raw)


@FUZZ
@given(st.sampled_from([tag_of(kind) for kind in KINDS]), st.integers(0, 15), st.binary(max_size=300))
def test_arbitrary_bytes_behind_a_known_tag(tag: int, count: int, rest: bytes) -> None:
    assert_one_error(CODEC, bytes([0x90 | count, tag]) + rest)


@FUZZ
@given(messages, st.data())
def test_mutated_messages_raise_nothing_but_malformed(message: Message, data: st.DataObject) -> None:
    raw = bytearray(CODEC.encode(message))
    for _ in range(data.draw(st.integers(1, 4))):
        mutate(raw, data)
    for codec in (CODEC, FIRST_CODEC):
        assert_one_error(codec, bytes(raw))


def mutate(raw: bytearray, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(raw)))
    match data.draw(st.sampled_from(["set", "cut", "insert", "remove", "repeat"])):
        case "set" if place < len(raw):
            raw[place] = data.draw(st.integers(0, 255))
        case "cut":
            del raw[place:]
        case "insert":
            raw[place:place] = data.draw(st.binary(min_size=1, max_size=8))
        case "remove":
            del raw[place : place + data.draw(st.integers(1, 8))]
        case _:
            raw[place:place] = raw[:place]


def assert_one_error(codec: Codec[Any], raw: bytes) -> None:
    try:
        message = codec.decode(raw)
    except MalformedMessage as error:
        reason = error.reason
    else:
        # What is let in keeps to its declared limits, or a strict reader would not take it again.
        assert codec.decode(codec.encode(message)) == message
        return
    assert reason in (Reason.MALFORMED, Reason.UNSUPPORTED)


@given(messages, st.data())
def test_a_message_cut_short_is_malformed(message: Message, data: st.DataObject) -> None:
    raw = CODEC.encode(message)
    with pytest.raises(MalformedMessage):
        CODEC.decode(raw[: data.draw(st.integers(0, len(raw) - 1))])
    with pytest.raises(MalformedMessage):
        CODEC.decode(raw + data.draw(st.binary(min_size=1, max_size=8)))


def test_unknown_tags_are_told_from_wrong_messages() -> None:
    known = {tag_of(kind) for kind in KINDS}
    for tag in range(1_000):
        raw = msgspec.msgpack.encode([tag, 1.5, 1])
        with pytest.raises(MalformedMessage) as caught:
            CODEC.decode(raw)
        assert isinstance(caught.value, UnknownMessage) is (tag not in known)


# Heads of arrays, maps, bytes, text and extensions that announce up to 2^32 - 1 elements.
HOSTILE_HEADS = [bytes([head]) + b"\xff" * 4 for head in (0xDD, 0xDF, 0xC6, 0xDB, 0xC9)]
HOSTILE_HEADS += [bytes([head]) + b"\xff" * 2 for head in (0xDC, 0xDE, 0xC5, 0xDA, 0xC8)]
BOUND = 64 * 1024


@pytest.mark.parametrize("kind", [*NAMED, "Hello"])
def test_hostile_lengths_allocate_nothing(kind: str) -> None:
    """In place of each element of a message, at every depth that its bytes show."""
    codec: Codec[Any] = FIRST_CODEC if kind == "Hello" else CODEC
    raw = codec.encode(first_value(Hello if kind == "Hello" else NAMED[kind]))
    for place in range(len(raw)):
        for head in HOSTILE_HEADS:
            assert peak_of(codec, raw[:place] + head + raw[place + 1 :]) < BOUND


def test_the_deepest_message_of_a_frame_stays_within_a_few_frames() -> None:
    for raw in (
        b"\x93\x01\x01" + b"\x91" * (FRAME_BYTES - 3),
        b"\x93\x01\x01" + b"\x81" * (FRAME_BYTES - 3),
        b"\x93\x01\x01\xdd\x00\x0f\xff\xf8" + b"\xc0" * (FRAME_BYTES - 8),
    ):
        assert peak_of(CODEC, raw) < 4 * FRAME_BYTES


def first_value(kind: type) -> Any:  # noqa: ANN401 - of whichever type it was asked for
    """A small value with something in every field."""
    return _filled(msgspec.inspect.type_info(kind))


def _filled(info: msgspec.inspect.Type) -> Any:  # noqa: ANN401 - see above
    match info:
        case msgspec.inspect.StructType():
            return info.cls(*(_filled(field.type) for field in info.fields))
        case msgspec.inspect.UnionType():
            return _filled(next(one for one in info.types if not isinstance(one, msgspec.inspect.NoneType)))
        case msgspec.inspect.VarTupleType():
            return (_filled(info.item_type),)
        case msgspec.inspect.DictType():
            return {_filled(info.key_type): _filled(info.value_type)}
        case msgspec.inspect.EnumType():
            return next(iter(info.cls))
        case msgspec.inspect.IntType():
            return info.ge
        case msgspec.inspect.BytesType():
            return bytes(info.min_length or 1)
        case msgspec.inspect.StrType():
            return "x"
        case _:
            return True


def peak_of(codec: Codec[Any], raw: bytes) -> int:
    tracemalloc.start()
    try:
        codec.decode(raw)
    except MalformedMessage:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak
