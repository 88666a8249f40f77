"""Known answers: the bytes of an event may never change under the same tag.

The ids are computed here once more, from the description of the format and not with the code
under test (docs/adr/0003-events-and-bursts.md).
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from linnet.core.ids import AuthorId, PeerId
from linnet.event.event import Spot
from linnet.event.signing import decode_unit, encode_unit, sign_unit, verify_unit
from linnet.identity.cards import Card, check_card, issue_card
from linnet.identity.keys import SigningKey, device_id

FILE: dict[str, Any] = json.loads((Path(__file__).parent.parent / "vectors" / "event.json").read_text())
PERSON = SigningKey(bytes.fromhex(FILE["person_seed"]))
DEVICE = SigningKey(bytes.fromhex(FILE["device_seed"]))
CARD = issue_card(PERSON, DEVICE.public, 1_700_000_000, 1_731_536_000, "vectors")
NAMES = [vector["name"] for vector in FILE["units"]]


@pytest.fixture(params=FILE["units"], ids=NAMES)
def vector(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = request.param
    return found


def test_the_card_of_the_vectors() -> None:
    assert device_id(DEVICE.public).hex() == FILE["device"]
    sig = bytes.fromhex(FILE["card_sig"])
    check_card(
        Card(
            AuthorId(PERSON.public),
            PeerId(DEVICE.public),
            1_700_000_000,
            1_731_536_000,
            "vectors",
            sig,
        )
    )


def test_known_bytes_give_known_events(vector: dict[str, Any]) -> None:
    raw = bytes.fromhex(vector["unit"])
    verified = verify_unit(decode_unit(raw), CARD)
    assert [event.id.hex() for event in verified.events] == vector["ids"]
    assert encode_unit(verified.unit) == raw


def test_the_same_fields_give_the_same_bytes(vector: dict[str, Any]) -> None:
    verified = verify_unit(decode_unit(bytes.fromhex(vector["unit"])), CARD)
    unit, tails = verified.unit, [event.tail for event in verified.events]
    again = sign_unit(DEVICE, Spot(unit.topic, unit.author, unit.device, unit.seq, unit.prev), tails)
    assert again == verified


def test_ids_follow_the_description(vector: dict[str, Any]) -> None:
    topic, author, device, seq, prev, tails, _ = msgspec.msgpack.decode(bytes.fromhex(vector["unit"]))
    ids = []
    for tail in tails:
        fields = [topic, author, device, seq, prev, *msgspec.msgpack.decode(tail)]
        prev = hashlib.sha256(b"linnet/event/1" + msgspec.msgpack.encode(fields)).digest()
        ids.append(prev.hex())
        seq = None if seq is None else seq + 1
    assert ids == vector["ids"]
