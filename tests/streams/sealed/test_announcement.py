"""Announcements as bytes: sorted, bounded, and nothing but what they should be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.streams.sealed.hall import Hall, device

from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, DeviceId
from linnet.core.limits import BODY_BYTES
from linnet.groups.labels import Device
from linnet.streams.sealed.owner import (
    MOST_READERS,
    Announcement,
    Sort,
    decode_announcement,
    encode_announcement,
)

IDENTITY = b"\x09" + bytes(31)
FIRST = b"\x00" + bytes(156)
"""The length of the first message of a channel, which is the longest."""


def to(count: int) -> dict[Device, bytes]:
    return {Device(AuthorId(b"%032d" % at), DeviceId(b"d" * 8)): FIRST for at in range(count)}


def test_it_comes_back_as_it_went() -> None:
    for before in (None, 0, 12):
        told = Announcement(Sort.ADMIT, 3, before, IDENTITY, to(3))
        assert decode_announcement(encode_announcement(told)) == told
    real = Hall().allow("ben")[1]
    assert list(real.messages) == [device("ben")]
    assert decode_announcement(encode_announcement(real)) == real


def test_the_order_of_readers_does_not_show_who_came_first() -> None:
    told = to(5)
    backwards = dict(reversed(list(told.items())))
    assert encode_announcement(Announcement(Sort.EPOCH, 1, None, IDENTITY, told)) == encode_announcement(
        Announcement(Sort.EPOCH, 1, None, IDENTITY, backwards)
    )


def test_all_readers_fit_one_event() -> None:
    body = encode_announcement(Announcement(Sort.EPOCH, 1, None, IDENTITY, to(MOST_READERS)))
    assert len(body) <= BODY_BYTES
    assert len(decode_announcement(body).messages) == MOST_READERS


def test_what_is_wrong_is_refused() -> None:
    good = encode_announcement(Announcement(Sort.EPOCH, 1, None, IDENTITY, to(2)))
    one, other = good[48:245], good[245:]
    assert len(one) == len(other)
    for bad in (
        b"",
        good[:-1],
        good + b"\x00",
        b"\x02" + good[1:],
        good[:1] + b"\x05" + good[2:],
        good[:2] + bytes(4) + good[6:],
        good[:14] + bytes(32) + good[46:],
        good[:46] + b"\xff\xff" + good[48:],
        good[:48] + other + one,
        good[:48] + one + one,
        good[:88] + b"\x09" + good[89:],
    ):
        with pytest.raises(RemoteError):
            decode_announcement(bad)


@given(st.binary(max_size=400))
def test_foreign_bytes_are_an_announcement_or_an_error(data: bytes) -> None:
    try:
        told = decode_announcement(data)
    except RemoteError:
        return
    assert encode_announcement(told) == data
