"""The clear part of a fragment: what is taken, and what contradicts itself."""

from __future__ import annotations

from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.errors import InvalidEvent
from linnet.core.ids import AuthorId, DeviceId, EventId, TopicId
from linnet.core.limits import LARGEST_COUNT
from linnet.core.reasons import Reason
from linnet.event.event import Event, Spot, Tail
from linnet.event.signing import encode_unit, sign_unit
from linnet.places.multicast.fragmentation import (
    FRAGMENT,
    PIECE_BYTES,
    Change,
    Cut,
    Flag,
    Head,
    encode_head,
    head_of,
)
from linnet.testing.identities import known_identity

PLACE = TopicId(b"place..." * 4)
ANN = AuthorId(b"ann." * 8)
BEFORE = EventId(b"before.." * 4)
FIRST, LAST, OPENING = Flag.FIRST, Flag.LAST, Flag.OPENING
WHOLE = FIRST | LAST


def event(
    clear: bytes | None, body: bytes = b"x", kind: str = FRAGMENT, key: str | None = None, seq: int | None = 0
) -> Event:
    tail = Tail(None, None, None, None, kind, key, 0, clear, body)
    return Event(BEFORE, PLACE, ANN, DeviceId(b"device.."), seq, None, tail)


def reason_of(found: Event) -> Reason:
    with pytest.raises(InvalidEvent) as error:
        head_of(found)
    return error.value.reason


GOOD = [
    Head(1, 0, 1, 0, 0, WHOLE | OPENING),
    Head(1, 0, 1, 0, 0, FIRST | OPENING),
    Head(1, 1, 1, 10, 0, 0),
    Head(1, 2, 1, 20, 0, LAST),
    Head(1, 3, 2, 0, 0, WHOLE | Flag.STATE | Flag.HASH, Change(ANN, True, 2)),
    Head(1, 4, 3, 0, 0, WHOLE, Change(ANN, True, 0)),
    Head(1, 5, 4, 0, 0, WHOLE, Change(ANN, False, 0)),
    Head(2, 6, 5, 0, 1, WHOLE | OPENING, None, Cut(1, 5, 4, BEFORE)),
    Head(9, 6, 8, 0, 1, WHOLE | OPENING, None, Cut(1, 5, 4, BEFORE)),
    Head(LARGEST_COUNT, LARGEST_COUNT, LARGEST_COUNT, LARGEST_COUNT - 1, LARGEST_COUNT, LAST),
]

BAD = [
    (Head(1, 3, 0, 0, 0, WHOLE), b"x"),  # message 0
    (Head(1, 3, 2, 5, 0, FIRST), b"x"),  # first, but not at the beginning
    (Head(1, 3, 2, 0, 0, LAST), b"x"),  # at the beginning, but not first
    (Head(1, 0, 1, 5, 0, LAST), b"x"),  # number 0 begins nothing
    (Head(1, 0, 1, 0, 0, WHOLE), b"x"),  # number 0 opens nothing
    (Head(1, 3, 2, 0, 0, WHOLE | OPENING), b"x"),  # an opening without a cut
    (Head(2, 3, 2, 0, 0, WHOLE, None, Cut(1, 2, 1, BEFORE)), b"x"),  # a cut without an opening
    (Head(2, 3, 2, 5, 0, LAST | OPENING, None, Cut(1, 2, 1, BEFORE)), b"x"),  # inside of a message
    (Head(2, 3, 2, 0, 0, WHOLE | OPENING, None, Cut(2, 2, 1, BEFORE)), b"x"),  # behind its own term
    (Head(2, 3, 2, 0, 0, WHOLE | OPENING, None, Cut(1, 1, 1, BEFORE)), b"x"),  # not right before
    (Head(2, 3, 2, 0, 0, WHOLE | OPENING, None, Cut(1, 2, 2, BEFORE)), b"x"),  # a message's number again
    (Head(1, 3, 2, 0, 0, FIRST, Change(ANN, True, 2)), b"x"),  # a change in pieces
    (Head(1, 3, 2, 0, 0, WHOLE, Change(ANN, True, 3)), b"x"),  # effective after it is announced
    (Head(1, 3, 2, 0, 0, WHOLE, Change(ANN, False, 1)), b"x"),  # a part effective since a message
    (Head(1, 3, 2, 0, 0, FIRST), b""),  # no bytes, and not the last
    (Head(1, 3, 2, LARGEST_COUNT, 0, LAST), b"x"),  # past the largest number
]


@pytest.mark.parametrize("head", GOOD)
def test_a_head_comes_back_as_it_was(head: Head) -> None:
    assert head_of(event(encode_head(head))) == head


@pytest.mark.parametrize(("head", "body"), BAD)
def test_what_contradicts_itself_is_malformed(head: Head, body: bytes) -> None:
    assert reason_of(event(encode_head(head), body)) is Reason.MALFORMED


def test_an_empty_message_is_one_fragment() -> None:
    head = Head(1, 0, 1, 0, 0, WHOLE | OPENING)
    assert head_of(event(encode_head(head), b"")) == head
    assert (head.is_first, head.is_last) == (True, True)


@pytest.mark.parametrize(
    "found",
    [
        event(None),
        event(b""),
        event(encode_head(GOOD[0]), kind="message"),
        event(encode_head(GOOD[0]), key="state"),
        event(encode_head(GOOD[0]), seq=None),
        event(encode_head(GOOD[0]) + b"\x00"),
        event(encode_head(GOOD[0])[:-1]),
        event(msgspec.msgpack.encode([1, -1, 1, 0, 0, 3, None, None])),
        event(msgspec.msgpack.encode([1, 2**63, 1, 0, 0, 3, None, None])),
        event(msgspec.msgpack.encode([1, 1, 1, 0, 0, 32, None, None])),
        event(msgspec.msgpack.encode([1, 1, 1, 0, 0, 3, [b"short", True, 0], None])),
        event(msgspec.msgpack.encode([1, 1, 1, 0, 0, 3, None, None, "more"])),
    ],
)
def test_what_is_no_head_is_malformed(found: Event) -> None:
    assert reason_of(found) is Reason.MALFORMED


@given(st.binary(max_size=200))
def test_any_bytes_are_a_head_or_malformed(clear: bytes) -> None:
    with suppress(InvalidEvent):  # anything else that is raised is a bug
        head = head_of(event(clear))
        assert head_of(event(encode_head(head))) == head


def test_a_piece_that_is_too_large() -> None:
    clear = encode_head(GOOD[0])
    assert head_of(event(clear, bytes(PIECE_BYTES + 256))) == GOOD[0]
    assert reason_of(event(clear, bytes(PIECE_BYTES + 257))) is Reason.TOO_LARGE


def test_the_largest_fragment_stays_below_64_kib() -> None:
    largest = Head(
        LARGEST_COUNT,
        LARGEST_COUNT,
        LARGEST_COUNT,
        0,
        LARGEST_COUNT,
        31,
        Change(ANN, True, LARGEST_COUNT),
        Cut(LARGEST_COUNT - 1, LARGEST_COUNT - 1, LARGEST_COUNT - 1, BEFORE),
    )
    voice = known_identity("host")
    body = bytes(PIECE_BYTES + 256)
    tail = Tail(None, None, None, None, FRAGMENT, None, LARGEST_COUNT, encode_head(largest), body)
    unit = sign_unit(
        voice.device, Spot(PLACE, voice.author, voice.card.device, LARGEST_COUNT, BEFORE), [tail]
    )
    assert head_of(unit.events[0]) == largest
    assert len(encode_unit(unit.unit)) + len(msgspec.msgpack.encode(voice.card)) < 64 * 1024
