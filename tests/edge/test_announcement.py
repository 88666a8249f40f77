"""The datagram: fixed widths, nothing in it but what is needed, everything else refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.errors import RemoteError
from linnet.core.reasons import Reason
from linnet.edge.announcement import (
    ANNOUNCEMENT_BYTES,
    MOST_BYTES,
    Announcement,
    check_announcement,
    make_announcement,
    read_announcement,
)
from linnet.identity.keys import SigningKey

KEY = SigningKey(b"k" * 32)
NONCE = b"12345678"
DATAGRAM = make_announcement(KEY, 4711, NONCE)


def test_what_is_announced_is_read() -> None:
    assert read_announcement(DATAGRAM) == Announcement(KEY.public, 4711, NONCE)
    check_announcement(DATAGRAM, KEY.public)
    assert len(DATAGRAM) == ANNOUNCEMENT_BYTES == 111
    assert len(DATAGRAM) <= MOST_BYTES


@given(st.integers(0, ANNOUNCEMENT_BYTES - 1), st.integers(1, 255))
def test_no_byte_can_be_changed(place: int, change: int) -> None:
    forged = bytearray(DATAGRAM)
    forged[place] ^= change
    with pytest.raises(RemoteError) as refusal:
        check_announcement(bytes(forged), read_announcement(bytes(forged)).lan)
    wanted = Reason.MALFORMED if place < 4 else Reason.UNSUPPORTED if place == 4 else Reason.BAD_SIGNATURE
    assert refusal.value.reason is wanted


@given(st.binary(max_size=300))
def test_foreign_bytes_are_refused_and_nothing_else_happens(data: bytes) -> None:
    with pytest.raises(RemoteError):
        read_announcement(data)


@pytest.mark.parametrize(
    ("datagram", "reason"),
    [
        (b"", Reason.MALFORMED),
        (DATAGRAM[:4], Reason.MALFORMED),
        (DATAGRAM[:-1], Reason.MALFORMED),
        (DATAGRAM + b"\0", Reason.MALFORMED),
        (DATAGRAM + bytes(MOST_BYTES), Reason.TOO_LARGE),
        (DATAGRAM[:4] + b"\2" + DATAGRAM[5:], Reason.UNSUPPORTED),
        (make_announcement(KEY, 0, NONCE), Reason.MALFORMED),
    ],
    ids=["empty", "magic", "short", "long", "large", "version", "port"],
)
def test_refusals_are_named(datagram: bytes, reason: Reason) -> None:
    with pytest.raises(RemoteError) as refusal:
        read_announcement(datagram)
    assert refusal.value.reason is reason


def test_a_signature_of_another_key_is_refused() -> None:
    other = make_announcement(SigningKey(b"o" * 32), 4711, NONCE)
    with pytest.raises(RemoteError) as refusal:
        check_announcement(DATAGRAM[:-64] + other[-64:], KEY.public)
    assert refusal.value.reason is Reason.BAD_SIGNATURE
