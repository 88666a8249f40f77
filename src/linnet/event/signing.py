"""Making and checking units of events."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import cast

import msgspec

from linnet.core.errors import InvalidEvent, Refused, RemoteError
from linnet.core.ids import AuthorId, DeviceId, EventId, TopicId
from linnet.core.limits import BODY_BYTES, BURST_BYTES, BURST_EVENTS, LARGEST_COUNT
from linnet.core.reasons import Reason
from linnet.event.event import MESSAGE, Event, Tail, Unverified, Verified
from linnet.identity.cards import Card
from linnet.identity.keys import SigningKey, verify

Verifier = Callable[[Unverified, Card], Verified]
"""`verify_unit`, or in a simulation the same with its results remembered."""

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
    """The tail of an application's message in a stream; `Refused` if its body is too large."""
    if len(body) > BODY_BYTES:
        raise Refused(Reason.TOO_LARGE, f"a body of {len(body)} bytes, at most {BODY_BYTES} are allowed")
    return Tail(None, None, None, None, MESSAGE, None, time, None, body)


def sign_unit(
    key: SigningKey,
    topic: TopicId,
    author: AuthorId,
    device: DeviceId,
    seq: int | None,
    prev: EventId | None,
    tails: Sequence[Tail],
) -> Verified:
    """One unit of consecutive events, signed. What we made ourselves needs no check.

    `Refused` if there are more events or bytes than a unit may have: nobody would take it.
    """
    encoded = tuple(map(_encode, tails))
    if not 1 <= len(encoded) <= BURST_EVENTS:
        raise Refused(Reason.TOO_MANY, f"a unit has 1 to {BURST_EVENTS} events, not {len(encoded)}")
    fault = _limit_broken(seq, encoded)
    if fault is not None:
        raise Refused(*fault)
    ids = _ids(topic, author, device, seq, prev, encoded)
    unit = Unverified(topic, author, device, seq, prev, encoded, key.sign(ids[-1]))
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
    ids = _ids(unit.topic, unit.author, unit.device, unit.seq, unit.prev, unit.tails)
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
    """The id of a unit's last event, to see whether it is known before anything of it is checked.

    `InvalidEvent` if its tails are none.
    """
    return _ids(unit.topic, unit.author, unit.device, unit.seq, unit.prev, unit.tails)[-1]


def recall_unit(unit: Unverified) -> Verified:
    """A unit of our own log, which was checked before it was written."""
    ids = _ids(unit.topic, unit.author, unit.device, unit.seq, unit.prev, unit.tails)
    return Verified(unit, _events(unit, ids, list(map(_decode_tail, unit.tails))))


def encode_unit(unit: Unverified) -> bytes:
    """The bytes of a unit, as the log keeps them."""
    return _encode(unit)


def decode_unit(raw: bytes) -> Unverified:
    """A unit from bytes of our own log; foreign ones come through `linnet.wire`."""
    return _UNIT_DECODER.decode(raw)


def _limit_broken(seq: int | None, tails: Sequence[bytes]) -> tuple[Reason, str] | None:
    """The bound of a whole unit that is passed, if one is; those of its fields are the decoder's."""
    if sum(map(len, tails)) > BURST_BYTES:
        return Reason.TOO_LARGE, f"its events have more than {BURST_BYTES} bytes"
    if seq is None:
        return None if len(tails) == 1 else (Reason.MALFORMED, "a burst without sequence numbers")
    if seq + len(tails) - 1 > LARGEST_COUNT:
        return Reason.MALFORMED, "a sequence number past the largest"
    return None


def _ids(
    topic: TopicId,
    author: AuthorId,
    device: DeviceId,
    seq: int | None,
    prev: EventId | None,
    tails: Sequence[bytes],
) -> list[EventId]:
    """The id of each event of a chain: the hash of its canonical encoding, which names its predecessor."""
    if {tail[:1] for tail in tails} != {_TAIL_HEAD}:
        raise InvalidEvent(Reason.MALFORMED, "a tail that is no array of its fields")
    # The hottest loop of whoever receives bursts: what can be outside of it, is.
    shared = _EVENT_TAG + _EVENT_HEAD + _encode(topic) + _encode(author) + _encode(device)
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
