"""Whether an entry of a log is the unit that its head names, and signed by its device."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace
from tests.event.units import chain_of

from linnet.core.ids import EventId
from linnet.core.stores import Entry
from linnet.event.signing import encode_unit, is_signed, is_sound
from linnet.testing.identities import known_identity

ANN, BEN = known_identity("ann"), known_identity("ben")
CARD = msgspec.msgpack.encode(ANN.card)


def entry() -> Entry:
    verified = chain_of(ANN, 2)[1]
    unit = verified.unit
    return Entry(unit.topic, unit.author, unit.device, unit.seq, 1, verified.head, 0.0, encode_unit(unit))


def test_what_was_written_is_sound_and_signed() -> None:
    assert is_sound(entry())
    assert is_signed(entry(), CARD)
    assert is_signed(entry(), None), "no card, no judgement"


@pytest.mark.parametrize(
    "wrong",
    [
        {"raw": b""},
        {"raw": b"\xc1" * 100},
        {"head": EventId(bytes(32))},
        {"first": 7},
        {"count": 2},
        {"author": BEN.author},
        {"device": BEN.card.device},
    ],
)
def test_any_difference_is_damage(wrong: dict[str, object]) -> None:
    assert not is_sound(replace(entry(), **wrong))


def test_every_altered_byte_is_found() -> None:
    whole = entry()
    for at in range(len(whole.raw)):
        altered = bytearray(whole.raw)
        altered[at] ^= 1
        assert not is_signed(replace(whole, raw=bytes(altered)), CARD), at


def test_a_card_that_cannot_be_read_or_is_of_another_is_no_proof() -> None:
    assert not is_signed(entry(), b"nonsense")
    assert not is_signed(entry(), msgspec.msgpack.encode(BEN.card))
