"""Whether what a log gives back is what was written: ids are hashes, so any change shows."""

from __future__ import annotations

import msgspec

from linnet.core.errors import InvalidEvent
from linnet.core.stores import Entry
from linnet.event.signing import decode_unit, unit_head, verify_unit
from linnet.identity.cards import Card

_decode_card = msgspec.msgpack.Decoder(Card).decode


def is_sound(entry: Entry) -> bool:
    """Whether the bytes of an entry are the unit that its head names.

    Nothing is said of its topic: the first event of a room is logged under the room that it makes.
    """
    try:
        unit = decode_unit(entry.raw)
        named = (unit.author, unit.device, unit.seq, len(unit.tails), unit_head(unit))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, InvalidEvent, OverflowError):
        return False
    return named == (entry.author, entry.device, entry.first, entry.count, entry.head)


def is_signed(entry: Entry, card: bytes | None) -> bool:
    """The same, and its signature by the card of its device, if that is given: for a look through all."""
    if not is_sound(entry):
        return False
    try:
        known = None if card is None else _decode_card(card)
        if known is not None:
            verify_unit(decode_unit(entry.raw), known)
    except (InvalidEvent, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True
