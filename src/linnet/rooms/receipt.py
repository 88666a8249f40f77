"""Receipts of rooms: signed by the device, so that anyone may carry them."""

from __future__ import annotations

import msgspec

from linnet.core.ids import EventId, TopicId
from linnet.identity.cards import Card, CardCheck, check_card
from linnet.identity.keys import SigningKey, verify
from linnet.rooms.messages import RoomReceipt

_TAG = b"linnet/room receipt/1"
_encode = msgspec.msgpack.Encoder().encode


def sign_room_receipt(
    key: SigningKey, card: Card, room: TopicId, at_ms: int, heads: tuple[EventId, ...], off: bool = False
) -> RoomReceipt:
    """A statement of this device."""
    return RoomReceipt(room, card, at_ms, heads, off, key.sign(_signed(room, card, at_ms, heads, off)))


def check_room_receipt(receipt: RoomReceipt, card_check: CardCheck = check_card) -> None:
    """Raise `RemoteError` unless its device signed it, and the person the device's card."""
    card_check(receipt.card)
    signed = _signed(receipt.room, receipt.card, receipt.at_ms, receipt.heads, receipt.off)
    verify(receipt.card.device_key, signed, receipt.sig)


def _signed(room: TopicId, card: Card, at_ms: int, heads: tuple[EventId, ...], off: bool) -> bytes:
    return _TAG + _encode((room, card.person, card.device_key, at_ms, heads, off))
