from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from linnet.core.errors import MalformedMessage, RemoteError
from linnet.core.ids import AuthorId, DeviceId, EventId
from linnet.core.limits import BODY_BYTES
from linnet.core.reasons import Reason
from linnet.groups.bodies import (
    BLOB_BYTES,
    HEAD_BYTES,
    NOBODY,
    Acks,
    Add,
    Body,
    Create,
    Head,
    Item,
    Keys,
    Leave,
    Remove,
    Update,
    decode_body,
    encode_body,
)
from linnet.groups.labels import Device, MemberId
from linnet.groups.prekeys import Bundle

KEY = bytes([9]) * 32
HEAD = Head(MemberId(b"m" * 16), 3, 7)
KINDS = {0: 157, 1: 149, 2: 153}


def device(number: int) -> Device:
    return Device(AuthorId(bytes([number]) * 32), DeviceId(b"d" * 8))


def direct(kind: int, payload: int = 32) -> bytes:
    return bytes([kind]) + bytes(KINDS[kind] - 33 + payload)


BODIES: list[Body] = [
    Create(HEAD, KEY, b"n" * 16, ((device(1), KEY), (device(2), KEY)), (direct(0),)),
    Update(HEAD, KEY, (direct(0), direct(1), direct(2))),
    Remove(HEAD, KEY, (MemberId(b"a" * 16), MemberId(b"b" * 16)), (direct(1),)),
    Add(HEAD, KEY, device(1), KEY, b"n" * 16, EventId(b"k" * 32), direct(0, 64), b"blob"),
    Acks(
        HEAD,
        (
            Item(
                False,
                EventId(b"o" * 32),
                ((MemberId(b"a" * 16), direct(1)), (MemberId(b"b" * 16), direct(2))),
            ),
            Item(True, EventId(b"p" * 32), ((MemberId(b"c" * 16), direct(0)),)),
            Item(True, EventId(b"q" * 32), ()),
        ),
    ),
    Leave(HEAD),
    Keys(Bundle(KEY, 1, 0, 100, KEY, ((1, KEY),))),
]


@given(st.binary(max_size=400) | st.builds(lambda tail: b"\x01" + tail, st.binary(max_size=400)))
def test_arbitrary_bytes_are_a_body_of_their_own_form_or_refused(data: bytes) -> None:
    try:
        body = decode_body(data)
    except RemoteError:
        return
    assert encode_body(body) == data


@pytest.mark.parametrize("body", BODIES, ids=lambda body: type(body).__name__)
@given(place=st.integers(0, 2**16), bit=st.integers(0, 7))
def test_a_flipped_bit_is_another_body_or_none(body: Body, place: int, bit: int) -> None:
    data = bytearray(encode_body(body))
    data[place % len(data)] ^= 1 << bit
    try:
        other = decode_body(bytes(data))
    except RemoteError:
        return
    assert other != body
    assert encode_body(other) == data


@pytest.mark.parametrize(
    ("body", "size"),
    [
        (BODIES[0], HEAD_BYTES + 32 + 16 + 2 + 2 * 72 + 157),
        (BODIES[1], HEAD_BYTES + 32 + 2 + 149 + 153 + 157),
        (BODIES[2], HEAD_BYTES + 32 + 2 + 2 * 16 + 2 + 149),
        (BODIES[3], HEAD_BYTES + 32 + 40 + 32 + 16 + 32 + 189 + 4 + 4),
        (Acks(HEAD, (Item(False, EventId(b"o" * 32), ()),)), HEAD_BYTES + 2 + 35),
        (BODIES[5], HEAD_BYTES),
    ],
    ids=["create", "update", "remove", "add", "ack", "leave"],
)
def test_each_has_its_size(body: Body, size: int) -> None:
    assert len(encode_body(body)) == size
    assert HEAD_BYTES == 26


@pytest.mark.parametrize(
    "wrong",
    [
        replace(BODIES[0], members=((device(2), KEY), (device(1), KEY))),
        replace(BODIES[0], members=((device(1), KEY), (device(1), KEY))),
        replace(BODIES[0], members=((device(1), bytes(32)), (device(2), KEY))),
        replace(BODIES[0], spk=bytes(32)),
        replace(BODIES[1], spk=bytes(32)),
        replace(BODIES[2], targets=(MemberId(b"b" * 16), MemberId(b"a" * 16))),
        replace(BODIES[2], targets=()),
        replace(BODIES[4], items=()),
        replace(BODIES[4], items=(Item(True, EventId(b"q" * 32), ()), Item(False, EventId(b"q" * 32), ()))),
        Acks(HEAD, (Item(True, EventId(b"q" * 32), ((MemberId(b"a" * 16), direct(1)),) * 2),)),
        Leave(Head(NOBODY, 1, 0)),
        Leave(Head(MemberId(b"m" * 16), 0, 0)),
    ],
)
def test_what_is_not_in_order_is_refused(wrong: Body) -> None:
    with pytest.raises(MalformedMessage):
        decode_body(encode_body(wrong))


def test_limits_have_their_reasons() -> None:
    with pytest.raises(MalformedMessage) as caught:
        decode_body(bytes(BODY_BYTES + 1))
    assert caught.value.reason is Reason.TOO_LARGE
    assert isinstance(BODIES[3], Add)
    largest = replace(BODIES[3], blob=bytes(BLOB_BYTES))
    assert decode_body(encode_body(largest)) == largest
    with pytest.raises(MalformedMessage) as caught:
        decode_body(encode_body(replace(BODIES[3], blob=bytes(BLOB_BYTES + 1))))
    assert caught.value.reason is Reason.TOO_LARGE
    data = encode_body(BODIES[5])
    for unknown in (b"\x02" + data[1:], data[:1] + b"\x06" + data[2:]):
        with pytest.raises(MalformedMessage) as caught:
            decode_body(unknown)
        assert caught.value.reason is Reason.UNSUPPORTED
