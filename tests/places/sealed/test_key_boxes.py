"""Boxes with keys: one device opens each, in one message."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.raised import reason_of

from linnet.core.errors import MalformedMessage, Refused, RemoteError
from linnet.core.ids import DeviceId, TopicId
from linnet.core.reasons import Reason
from linnet.groups.labels import Device
from linnet.groups.prekeys import LIFE, Prekeys, encode_bundle, make_prekeys
from linnet.groups.primitives import key_pair
from linnet.places.sealed.epoch_keys import EpochKey
from linnet.places.sealed.key_boxes import (
    Box,
    Spoken,
    decode_boxes,
    encode_boxes,
    find_box,
    open_box,
    seal_box,
)
from linnet.testing.identities import known_identity

NOW = 1_800_000_000.0
LUCK = random.Random(1).randbytes


def device(name: str) -> Device:
    known = known_identity(name)
    return Device(known.author, known.card.device)


HOST, ANN, BEN = map(device, ("host", "ann", "ben"))
VOICE = key_pair(LUCK)
KEYS = [EpochKey(b"epoch--1", 3, 1, b"k" * 32), EpochKey(b"epoch--2", 0, 9, b"l" * 32)]
SPOKEN = Spoken(TopicId(b"p" * 32), HOST, 1, 5)
PREKEYS = {name: make_prekeys(LUCK, NOW, 0) for name in (ANN, BEN)}


def box(to: Device, keys: list[EpochKey] = KEYS) -> Box:
    prekeys = PREKEYS[to]
    sealed = seal_box(SPOKEN, to, prekeys.bundle, keys, VOICE, LUCK, NOW)
    return Box(to, len(keys), encode_bundle(prekeys.bundle), sealed)


def opens(sealed: Box, prekeys: Prekeys, spoken: Spoken = SPOKEN, identity: bytes = VOICE.public) -> bool:
    try:
        return open_box(spoken, sealed, identity, prekeys, NOW + 5) == KEYS
    except RemoteError:
        return False


def test_the_device_that_it_is_for_opens_it_and_no_other() -> None:
    body = encode_boxes(VOICE.public, [box(ANN), replace(box(BEN), prekeys=b"")])
    identity, boxes = decode_boxes(body)
    assert [each.device for each in boxes] == [ANN, BEN]
    assert opens(boxes[0], PREKEYS[ANN], identity=identity)
    assert opens(boxes[1], PREKEYS[BEN], identity=identity)
    assert not opens(boxes[0], PREKEYS[BEN])
    assert not opens(replace(boxes[0], device=BEN), PREKEYS[ANN])
    assert find_box(body, BEN) == (VOICE.public, boxes[1])
    assert find_box(body, HOST) is None


@pytest.mark.parametrize(
    "spoken",
    [
        replace(SPOKEN, place=TopicId(b"q" * 32)),
        replace(SPOKEN, voice=BEN),
        replace(SPOKEN, term=2),
        replace(SPOKEN, message=6),
    ],
)
def test_it_opens_in_no_other_message(spoken: Spoken) -> None:
    assert not opens(box(ANN), PREKEYS[ANN], spoken)


def test_another_voice_cannot_have_made_it() -> None:
    assert not opens(box(ANN), PREKEYS[ANN], identity=key_pair(LUCK).public)


def test_nothing_is_sealed_to_prekeys_that_have_ended() -> None:
    assert (
        reason_of(Refused, seal_box, SPOKEN, ANN, PREKEYS[ANN].bundle, KEYS, VOICE, LUCK, NOW + LIFE + 1)
        is Reason.PREKEY_EXPIRED
    )


def test_what_is_cut_or_too_long_or_newer_is_refused() -> None:
    body = encode_boxes(VOICE.public, [box(ANN)])
    for bad in (body[:-1], body + b"x", b"\x02" + body[1:], body[:33] + b"\xff" * 4 + body[37:], b""):
        with pytest.raises(MalformedMessage):
            decode_boxes(bad)


def test_a_name_in_anothers_prekeys_misleads_nobody() -> None:
    name = BEN.author + BEN.device
    posing = replace(box(ANN), prekeys=b"x" * 60 + name + b"y" * 60)
    body = encode_boxes(VOICE.public, [posing, replace(box(BEN), prekeys=b"")])
    found = find_box(body, BEN)
    assert found is not None
    assert opens(found[1], PREKEYS[BEN])
    assert find_box(encode_boxes(VOICE.public, [posing]), BEN) is None


def test_among_many_boxes_of_one_length_each_finds_its_own() -> None:
    guests = [Device(ANN.author, DeviceId(bytes(7) + bytes([number]))) for number in range(50)]
    told = [replace(box(ANN, KEYS[:1]), device=guest, prekeys=b"") for guest in guests]
    body = encode_boxes(VOICE.public, told)
    for guest, mine in zip(guests, told, strict=True):
        assert find_box(body, guest) == (VOICE.public, mine)
    assert find_box(body, BEN) is None


@given(st.binary(max_size=300))
def test_anything_is_refused_or_read(body: bytes) -> None:
    for data in (body, b"\x01" + body):
        try:
            decode_boxes(data)
            find_box(data, ANN)
        except RemoteError:
            continue
