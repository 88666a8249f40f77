"""Receipts of rooms: what is signed, and what is not taken."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from linnet.core.errors import RemoteError
from linnet.core.ids import EventId, TopicId
from linnet.core.reasons import Reason
from linnet.rooms.messages import RoomReceipt
from linnet.rooms.receipts import check_room_receipt, sign_room_receipt
from linnet.testing.identities import known_identity

ROOM = TopicId(b"r" * 32)
HEADS = (EventId(b"1" * 32), EventId(b"2" * 32))
ANN, BEN = known_identity("ann"), known_identity("ben")


def receipt() -> RoomReceipt:
    return sign_room_receipt(ANN.device, ANN.card, ROOM, 7, HEADS)


def test_a_receipt_says_who_has_what() -> None:
    made = receipt()
    check_room_receipt(made)
    assert (made.room, made.card, made.at_ms, made.heads, made.off) == (ROOM, ANN.card, 7, HEADS, False)


@pytest.mark.parametrize(
    "changed",
    [
        {"room": TopicId(b"q" * 32)},
        {"at_ms": 8},
        {"heads": HEADS[:1]},
        {"off": True},
        {"card": BEN.card},
        {"card": replace(ANN.card, person=BEN.author)},
        {"sig": bytes(64)},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_receipt_that_was_changed_is_false(changed: dict[str, object]) -> None:
    with pytest.raises(RemoteError) as error:
        check_room_receipt(replace(receipt(), **changed))
    assert error.value.reason is Reason.BAD_SIGNATURE
