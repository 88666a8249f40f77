"""Making and checking units of events: those that come in, and those that our own log gives back."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import cast

import msgspec

from linnet.core.errors import InvalidEvent, Refused, RemoteError
from linnet.core.ids import EventId
from linnet.core.limits import BODY_BYTES, BURST_BYTES, BURST_EVENTS, LARGEST_COUNT
from linnet.core.reasons import Reason
from linnet.core.stores import Entry
from linnet.event.event import MESSAGE, Event, Spot, Tail, Unverified, Verified
from linnet.identity.cards import Card
from linnet.identity.keys import SigningKey, verify

Verifier = Callable[[Unverified, Card], Verified]
"""Checks units: `verify_unit`, or in a simulation the same with its results remembered."""

_EVENT_TAG = b"linnet/event/1"
_FIELDS = 5 + len(Tail.__struct_fields__)
_EVENT_HEAD = bytes([0x90 | _FIELDS])  # msgpack: an array of so many elements
_TAIL_HEAD = bytes([0x90 | len(Tail.__struct_fields__)])
_KEY_HEAD = b"\xc4\x20"  # msgpack: 32 bytes follow
_NIL = b"\xc0"
_encode = msgspec.msgpack.Encoder().encode
_decode_tail = msgspec.msgpack.Decoder(Tail).decode
_UNIT_DECODER = msgspec.msgpack.Decoder(Unverified)


def message_tail(body: bytes, time: int) -> Tail:
    """Return the tail of an application's message in a stream; `Refused` if its body is too large."""
    if len(body) > BODY_BYTES:
        raise Refused(Reason.TOO_LARGE, f"a body of {len(body)} bytes, at most {BODY_BYTES} are allowed")
    return Tail(None, None, None, None, MESSAGE, None, time, None, body)


def sign_unit(key: SigningKey, spot: Spot, tails: Sequence[Tail]) -> Verified:
    """Sign consecutive events as one unit. The result needs no check.

    `Refused` if there are more events or bytes than a unit may have: no peer would take it.
    """
    encoded = tuple(map(_encode, tails))
    if not 1 <= len(encoded) <= BURST_EVENTS:
        raise Refused(Reason.TOO_MANY, f"a unit has 1 to {BURST_EVENTS} events, not {len(encoded)}")
    fault = _limit_broken(spot.seq, encoded)
    if fault is not None:
        raise Refused(*fault)
    ids = _ids(spot, encoded)
    signature = key.sign(ids[-1])
    unit = Unverified(spot.topic, spot.author, spot.device, spot.seq, spot.prev, encoded, signature)
    return Verified(unit, _events(unit, ids, tails))


def verify_unit(unit: Unverified, card: Card) -> Verified:
    """Check a unit against the card of its device; `InvalidEvent` if any of it is wrong.

    The card itself (its signature, dates and revocation) is the caller's to judge.
    """
    if card.person != unit.author or card.device != unit.device:
        raise InvalidEvent(Reason.UNKNOWN_DEVICE, "the card is of another person or device")
    fault = _limit_broken(unit.seq, unit.tails)
    if fault is not None:
        raise InvalidEvent(*fault)
    ids = _ids(unit, unit.tails)
    try:
        verify(card.device_key, ids[-1], unit.sig)
    except RemoteError as error:
        raise InvalidEvent(error.reason, error.detail) from error
    try:
        tails = list(map(_decode_tail, unit.tails))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidEvent(Reason.MALFORMED, str(error)) from error
    return Verified(unit, _events(unit, ids, tails))


def unit_head(unit: Unverified) -> EventId:
    """Return the id of a unit's last event, to see whether it is known before anything in it is checked.

    `InvalidEvent` if its tails are invalid.
    """
    return _ids(unit, unit.tails)[-1]


def recall_unit(unit: Unverified) -> Verified:
    """Return a unit of our own log, which was checked before it was written."""
    ids = _ids(unit, unit.tails)
    return Verified(unit, _events(unit, ids, list(map(_decode_tail, unit.tails))))


def encode_unit(unit: Unverified) -> bytes:
    """Return the bytes of a unit, as the log keeps them."""
    return _encode(unit)


def decode_unit(raw: bytes) -> Unverified:
    """Return a unit from bytes of our own log; foreign ones come through `linnet.wire`."""
    return _UNIT_DECODER.decode(raw)


def _limit_broken(seq: int | None, tails: Sequence[bytes]) -> tuple[Reason, str] | None:
    """Return the limit of a unit that is exceeded, if one is; the decoder checks those of its fields."""
    if sum(map(len, tails)) > BURST_BYTES:
        return Reason.TOO_LARGE, f"its events have more than {BURST_BYTES} bytes"
    if seq is None:
        return None if len(tails) == 1 else (Reason.MALFORMED, "a burst without sequence numbers")
    if seq + len(tails) - 1 > LARGEST_COUNT:
        return Reason.MALFORMED, "a sequence number past the largest"
    return None


def _ids(spot: Spot | Unverified, tails: Sequence[bytes]) -> list[EventId]:
    """Return the id of each event of a chain: the hash of its encoding, which names its predecessor."""
    if {tail[:1] for tail in tails} != {_TAIL_HEAD}:
        raise InvalidEvent(Reason.MALFORMED, "a tail that is no array of its fields")
    # The hottest loop of whoever receives bursts: what can be outside of it, is.
    shared = _EVENT_TAG + _EVENT_HEAD + _encode(spot.topic) + _encode(spot.author) + _encode(spot.device)
    seq, prev = spot.seq, spot.prev
    encode, sha256, key_head = _encode, hashlib.sha256, _KEY_HEAD
    ids: list[bytes] = []
    before = _NIL if prev is None else key_head + prev
    for number, tail in enumerate(tails, 0 if seq is None else seq):
        own = _NIL if seq is None else encode(number)
        digest = sha256(shared + own + before + tail[1:]).digest()
        ids.append(digest)
        before = key_head + digest
    return cast("list[EventId]", ids)


def _events(unit: Unverified, ids: Sequence[EventId], tails: Sequence[Tail]) -> tuple[Event, ...]:
    topic, author, device, seq, prev = unit.topic, unit.author, unit.device, unit.seq, unit.prev
    if seq is None:
        return (Event(ids[0], topic, author, device, None, prev, tails[0]),)
    before: list[EventId | None] = [prev, *ids[:-1]]
    numbers = range(seq, seq + len(ids))
    return tuple(map(Event, ids, repeat(topic), repeat(author), repeat(device), numbers, before, tails))


_decode_card = msgspec.msgpack.Decoder(Card).decode


def is_sound(entry: Entry) -> bool:
    """Return whether the bytes of an entry are the unit that its head names.

    Its topic is not checked: the first event of a room is logged under the room that it makes.
    """
    try:
        unit = decode_unit(entry.raw)
        named = (unit.author, unit.device, unit.seq, len(unit.tails), unit_head(unit))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, InvalidEvent, OverflowError):
        return False
    return named == (entry.author, entry.device, entry.first, entry.count, entry.head)


def is_signed(entry: Entry, card: bytes | None) -> bool:
    """Return whether an entry is sound and, if a card is given, signed by its device: for a full check."""
    if not is_sound(entry):
        return False
    try:
        known = None if card is None else _decode_card(card)
        if known is not None:
            verify_unit(decode_unit(entry.raw), known)
    except (InvalidEvent, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True
