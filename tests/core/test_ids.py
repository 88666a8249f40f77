from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given

from linnet.core.ids import (
    Contact,
    Count,
    Hints,
    WireAuthorId,
    WireDeviceId,
    WireEventId,
    WirePeerId,
    WireSignature,
    WireTopicId,
)
from linnet.testing.strategies import values


def passes(value: object, declared: Any) -> bool:  # noqa: ANN401 - an annotated type
    try:
        msgspec.msgpack.decode(msgspec.msgpack.encode(value), type=declared)
    except msgspec.ValidationError:
        return False
    return True


@pytest.mark.parametrize(
    ("declared", "length"),
    [
        (WirePeerId, 32),
        (WireAuthorId, 32),
        (WireDeviceId, 8),
        (WireTopicId, 32),
        (WireEventId, 32),
        (WireSignature, 64),
    ],
)
def test_ids_from_the_wire_have_their_length(declared: object, length: int) -> None:
    assert passes(bytes(length), declared)
    assert not passes(bytes(length - 1), declared)
    assert not passes(bytes(length + 1), declared)
    assert not passes("x" * length, declared)


@pytest.mark.parametrize(("value", "good"), [(0, True), (2**63 - 1, True), (-1, False), (2**63, False)])
def test_a_count_fits_a_signed_integer_of_64_bits(value: int, good: bool) -> None:
    assert passes(value, Count) is good


@pytest.mark.parametrize(
    ("hints", "good"),
    [
        ((), True),
        (("tls://[::1]:4000",) * 8, True),
        (("tls://[::1]:4000",) * 9, False),
        (("h" * 128,), True),
        (("h" * 129,), False),
        (("",), False),
    ],
)
def test_hints_are_few_and_short(hints: tuple[str, ...], good: bool) -> None:
    assert passes(hints, Hints) is good
    assert passes((bytes(32), hints), Contact) is good


@given(values(Contact))
def test_contacts_survive_the_wire(contact: Contact) -> None:
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(contact), type=Contact) == contact
