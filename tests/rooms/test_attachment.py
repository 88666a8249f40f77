from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.errors import InvalidEvent
from linnet.core.limits import BODY_BYTES
from linnet.core.reasons import Reason
from linnet.rooms.attachment import (
    MAX_BYTES,
    MAX_PIECES,
    Attachment,
    attachment_body,
    attachment_of,
    piece_digest,
)
from linnet.rooms.messages import CHUNK_BYTES


def named(name: str) -> str:
    return Attachment(name, 0, "", b"").file_name


def test_what_was_attached_is_read_back() -> None:
    first, last = piece_digest(b"a" * CHUNK_BYTES), piece_digest(b"b")
    made = Attachment("cat.png", CHUNK_BYTES + 1, "image/png", first + last)
    assert attachment_of(attachment_body(made)) == made
    assert made.pieces == (first, last)
    assert [made.size_of(number) for number in range(2)] == [CHUNK_BYTES, 1]


def test_the_largest_file_fits_an_event() -> None:
    made = Attachment("ü" * 255, MAX_BYTES, "x" * 100, bytes(32 * MAX_PIECES))
    assert len(attachment_body(made)) <= BODY_BYTES
    assert attachment_of(attachment_body(made)) == made


@pytest.mark.parametrize(
    "made",
    [
        Attachment("x", 1, "", b""),
        Attachment("x", 0, "", bytes(32)),
        Attachment("x", CHUNK_BYTES, "", bytes(64)),
        Attachment("x", 1, "", bytes(31)),
        Attachment("", 0, "", b""),
    ],
)
def test_what_cannot_be_is_refused(made: Attachment) -> None:
    with pytest.raises(InvalidEvent) as caught:
        attachment_of(attachment_body(made))
    assert caught.value.reason is Reason.MALFORMED


def test_a_name_stays_where_it_is_put() -> None:
    assert named("cat.png") == "cat.png"
    assert named("../../etc/passwd") == "passwd"
    assert named("C:\\temp\\x.exe") == "x.exe"
    assert named(".bashrc") == "bashrc"
    assert named("a\x1b[31m\n.txt") == "a_[31m_.txt"
    assert named("..") == "attachment"
    assert named("/") == "attachment"


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=255))
def test_no_name_leads_elsewhere(name: str) -> None:
    plain = named(name)
    assert plain
    assert "/" not in plain
    assert not plain.startswith(".")
    assert plain.isprintable()
    assert len(plain.encode()) <= 200


@given(st.binary(max_size=80))
def test_no_bytes_break_it(body: bytes) -> None:
    with contextlib.suppress(InvalidEvent):
        assert attachment_of(body).size >= 0
