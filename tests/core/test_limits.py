"""The limits have to agree with each other: what one lets in, the next must be able to carry."""

from __future__ import annotations

from msgspec import msgpack

from linnet.core import limits
from linnet.core.ids import AuthorId, Contact, DeviceId, EventId, PeerId, TopicId
from linnet.core.limits import (
    BODY_BYTES,
    BURST_BYTES,
    BURST_EVENTS,
    CHAINS_PER_MESSAGE,
    CLEAR_BYTES,
    DEPENDENCIES,
    EVENT_BYTES,
    FRAME_BYTES,
    KEY_CHARS,
    KIND_CHARS,
    LARGEST_COUNT,
    NEIGHBORS,
    STORAGE_NODES,
)
from linnet.event.event import Tail, Unverified

REFERENCES = (EventId(bytes(32)),) * DEPENDENCIES


def test_every_limit_is_a_positive_number() -> None:
    found = {name: value for name, value in vars(limits).items() if name.isupper()}
    assert len(found) > 10
    assert all(isinstance(value, int) and value > 0 for value in found.values())


def test_a_body_leaves_room_for_the_fields_of_a_message() -> None:
    plain = Tail(
        None, None, None, None, "k" * KIND_CHARS, "é" * KEY_CHARS, LARGEST_COUNT, None, bytes(BODY_BYTES)
    )
    assert len(msgpack.encode(plain)) <= EVENT_BYTES


def test_the_largest_clear_and_references_still_leave_room_for_a_body() -> None:
    rest = Tail(
        REFERENCES, REFERENCES, LARGEST_COUNT, REFERENCES, "k" * KIND_CHARS, "é" * KEY_CHARS, 0, None, b""
    )
    clear = Tail(None, None, None, None, "k", None, 0, bytes(CLEAR_BYTES), b"")
    assert len(msgpack.encode(rest)) + len(msgpack.encode(clear)) < EVENT_BYTES // 2


def test_the_largest_burst_fits_a_frame_with_its_card() -> None:
    tails = (bytes(BURST_BYTES // BURST_EVENTS),) * BURST_EVENTS
    unit = Unverified(
        TopicId(bytes(32)),
        AuthorId(bytes(32)),
        DeviceId(bytes(8)),
        LARGEST_COUNT,
        EventId(bytes(32)),
        tails,
        bytes(64),
    )
    assert len(msgpack.encode(unit)) + 1024 < FRAME_BYTES


def test_the_largest_control_messages_fit_a_frame() -> None:
    contact = Contact(PeerId(bytes(32)), ("h" * 128,) * 8)
    assert len(msgpack.encode((contact,) * (NEIGHBORS + STORAGE_NODES))) < FRAME_BYTES
    place = (bytes(32), bytes(8), LARGEST_COUNT, True)
    assert len(msgpack.encode((place,) * CHAINS_PER_MESSAGE)) < FRAME_BYTES
