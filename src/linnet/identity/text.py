"""Ids as people see and type them: a prefix that tells the sort, 56 letters, a checksum inside.

32 bytes and a 24-bit checksum over prefix and bytes are 35 bytes, which base32 turns into exactly
56 letters without padding. A slip of the fingers is noticed in all but 1 of 16 million cases.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from enum import StrEnum

from linnet.core.errors import BadText
from linnet.core.ids import AuthorId, EventId, PeerId, TopicId

_CHECKSUM_BYTES = 3
_PAYLOAD_BYTES = 32
_LETTERS = 56
_SHOWN = 80  # characters of a wrong id that a message repeats


class Sort(StrEnum):
    """The sort of thing that an id names; its prefix."""

    PERSON = "lp1"
    DEVICE = "ld1"
    TOPIC = "lt1"
    EVENT = "le1"


_NAMES = {Sort.PERSON: "person", Sort.DEVICE: "device", Sort.TOPIC: "topic", Sort.EVENT: "event"}


def to_text(sort: Sort, payload: bytes) -> str:
    """Return the text form of 32 bytes."""
    if len(payload) != _PAYLOAD_BYTES:
        raise ValueError(f"an id has {_PAYLOAD_BYTES} bytes, not {len(payload)}")
    return sort + base64.b32encode(payload + _checksum(sort, payload)).decode().lower()


def from_text(sort: Sort, text: str) -> bytes:
    """Return the 32 bytes of an id; `BadText` tells what is wrong with it."""
    text = text.strip()
    what = f"{_NAMES[sort]} id"
    found = next((other for other in Sort if text.lower().startswith(other)), None)
    shown = repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
    if found is None:
        raise BadText(f"{shown} is no {what}: it should begin with {sort!s}")
    if found is not sort:
        raise BadText(f"{shown} is a {_NAMES[found]} id where a {what} ({sort!s}…) is wanted")
    letters = text[len(sort) :]
    if len(letters) != _LETTERS:
        raise BadText(
            f"this {what} has {len(letters)} letters after {sort!s} instead of {_LETTERS}: "
            f"{'some are missing' if len(letters) < _LETTERS else 'there are too many'}; copy it again, whole"
        )
    try:
        # By way of ASCII: `upper` would take a long s for an s.
        decoded = base64.b32decode(letters.encode("ascii"), casefold=True)
    except (binascii.Error, ValueError) as error:
        raise BadText(f"this {what} has a character that no id has (only a-z and 2-7)") from error
    payload = decoded[:_PAYLOAD_BYTES]
    if _checksum(sort, payload) != decoded[_PAYLOAD_BYTES:]:
        raise BadText(f"this {what} fails its checksum: a letter is wrong; copy it again")
    return payload


def short(sort: Sort, payload: bytes) -> str:
    """Return a few letters of an id, for tables that people read; never to be parsed."""
    return to_text(sort, payload)[:10] + "…"


def _checksum(sort: Sort, payload: bytes) -> bytes:
    return hashlib.sha256(sort.encode() + payload).digest()[:_CHECKSUM_BYTES]


def device_text(device: PeerId) -> str:
    """Return a device id, ``ld1…``."""
    return to_text(Sort.DEVICE, device)


def person_text(person: AuthorId) -> str:
    """Return a person id, ``lp1…``."""
    return to_text(Sort.PERSON, person)


def topic_text(topic: TopicId) -> str:
    """Return a topic id, ``lt1…``."""
    return to_text(Sort.TOPIC, topic)


def event_text(event: EventId) -> str:
    """Return an event id, ``le1…``."""
    return to_text(Sort.EVENT, event)
