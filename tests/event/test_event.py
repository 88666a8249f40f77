"""The limits of every field, walked to the last value that passes and the first that does not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from msgspec.structs import replace

from linnet.core.ids import AuthorId, DeviceId, EventId, TopicId
from linnet.core.limits import (
    BODY_BYTES,
    BURST_EVENTS,
    CLEAR_BYTES,
    DEPENDENCIES,
    EVENT_BYTES,
    KEY_CHARS,
    KIND_CHARS,
    LARGEST_COUNT,
)
from linnet.event.event import MESSAGE, Event, Tail, Unverified, Verified
from linnet.testing.strategies import values

TAIL = Tail(None, None, None, None, MESSAGE, None, 0, None, b"")
UNIT = Unverified(
    TopicId(bytes(32)), AuthorId(bytes(32)), DeviceId(bytes(8)), 0, None, (bytes(12),), bytes(64)
)
REFERENCE = EventId(bytes(32))


def passes(value: Tail | Unverified) -> bool:
    try:
        decoded = msgspec.msgpack.decode(msgspec.msgpack.encode(value), type=type(value))
    except msgspec.ValidationError:
        return False
    assert decoded == value
    return True


@given(values(Tail))
def test_tails_survive_their_encoding(tail: Tail) -> None:
    assert passes(tail)


@given(values(Unverified))
def test_units_survive_their_encoding(unit: Unverified) -> None:
    assert passes(unit)


TAIL_LIMITS: list[tuple[str, Any, Any]] = [
    (name, (REFERENCE,) * DEPENDENCIES, (REFERENCE,) * (DEPENDENCIES + 1))
    for name in ("deps", "concurrent", "control")
]
TAIL_LIMITS += [
    ("deps", None, ()),
    ("deps", (REFERENCE,), (REFERENCE[:-1],)),
    ("height", LARGEST_COUNT, LARGEST_COUNT + 1),
    ("height", 0, -1),
    ("kind", "k" * KIND_CHARS, "k" * (KIND_CHARS + 1)),
    ("kind", "k", ""),
    ("key", "k" * KEY_CHARS, "k" * (KEY_CHARS + 1)),
    ("key", "", 0),
    ("time", LARGEST_COUNT, LARGEST_COUNT + 1),
    ("time", 0, -1),
    ("time", 0, None),
    ("clear", bytes(CLEAR_BYTES), bytes(CLEAR_BYTES + 1)),
    ("body", bytes(BODY_BYTES), bytes(BODY_BYTES + 1)),
    ("body", b"", None),
]


@pytest.mark.parametrize(("field", "last_good", "first_bad"), TAIL_LIMITS)
def test_the_limits_of_a_tail(field: str, last_good: object, first_bad: object) -> None:
    assert passes(replace(TAIL, **{field: last_good}))
    assert not passes(replace(TAIL, **{field: first_bad}))


UNIT_LIMITS: list[tuple[str, Any, Any]] = [
    ("topic", bytes(32), bytes(31)),
    ("author", bytes(32), bytes(33)),
    ("device", bytes(8), bytes(9)),
    ("seq", LARGEST_COUNT, LARGEST_COUNT + 1),
    ("seq", None, -1),
    ("prev", bytes(32), bytes(31)),
    ("tails", (bytes(12),) * BURST_EVENTS, (bytes(12),) * (BURST_EVENTS + 1)),
    ("tails", (bytes(12),), ()),
    ("tails", (bytes(EVENT_BYTES),), (bytes(EVENT_BYTES + 1),)),
    ("tails", (bytes(10),), (bytes(9),)),
    ("sig", bytes(64), bytes(63)),
]


@pytest.mark.parametrize(("field", "last_good", "first_bad"), UNIT_LIMITS)
def test_the_limits_of_a_unit(field: str, last_good: object, first_bad: object) -> None:
    assert passes(replace(UNIT, **{field: last_good}))
    assert not passes(replace(UNIT, **{field: first_bad}))


@pytest.mark.parametrize("value", [TAIL, UNIT])
def test_a_field_too_many_or_too_few_is_refused(value: Tail | Unverified) -> None:
    fields = msgspec.to_builtins(value, builtin_types=(bytes,))
    for wrong in ([*fields, None], fields[:-1]):
        with pytest.raises(msgspec.ValidationError):
            msgspec.msgpack.decode(msgspec.msgpack.encode(wrong), type=type(value))


def test_what_is_absent_costs_one_byte() -> None:
    encode = msgspec.msgpack.encode
    assert len(encode(TAIL)) == 1 + 4 + (1 + len(MESSAGE)) + 1 + 1 + 1 + 2


def test_an_event_speaks_of_its_tail() -> None:
    tail = replace(TAIL, body=b"tweet", time=7)
    event = Event(REFERENCE, UNIT.topic, UNIT.author, UNIT.device, 3, None, tail)
    assert (event.kind, event.body, event.time) == (MESSAGE, b"tweet", 7)
    assert Verified(UNIT, (event,)).head == REFERENCE


@pytest.mark.parametrize(("seq", "tails", "last"), [(0, 1, 0), (5, 1, 5), (5, 256, 260), (None, 1, None)])
def test_the_last_number_of_a_unit(seq: int | None, tails: int, last: int | None) -> None:
    assert replace(UNIT, seq=seq, tails=(bytes(12),) * tails).last == last
