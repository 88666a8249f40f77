"""Every label that separates one use of a key or hash from another, in one place so that none is used twice.

Every input of a hash, a key derivation or the `info` of an encryption goes through `fields`, label first: two
different lists of fields never make the same bytes.
"""

from __future__ import annotations

import struct
from enum import Enum
from typing import NamedTuple, NewType

from linnet.core.ids import AuthorId, DeviceId

_PREFIX = b"dcgka/v1/"

MEMBER = _PREFIX + b"member"
"""The id of a member, from its device and the nonce of its addition."""
INITIAL = _PREFIX + b"x3dh"
"""The key of the first message between two members."""
TWO_PARTY = _PREFIX + b"2sm"
"""All later messages between two members."""
PREKEY_CHOICE = _PREFIX + b"prekey-choice"
"""Which one-time prekey of a bundle a member begins with."""
MEMBER_SECRET = _PREFIX + b"member-secret"
"""One member's share of a seed."""
RATCHET = _PREFIX + b"ratchet"
"""A step of a member's outer ratchet."""
MESSAGE = _PREFIX + b"app"
"""The keys of the messages of one epoch."""
WELCOME = _PREFIX + b"welcome"
"""The blob that describes the group to a newcomer."""

ALL = (
    MEMBER,
    INITIAL,
    TWO_PARTY,
    PREKEY_CHOICE,
    MEMBER_SECRET,
    RATCHET,
    MESSAGE,
    WELCOME,
)


class Purpose(bytes, Enum):
    """The purpose of a direct message: one made for one purpose never opens for another."""

    SEED = b"seed"
    WELCOME = b"welcome"
    RATCHET = b"ratchet"
    FORWARD = b"forward"


STEP_SECRET = b"\x01"
"""First byte of a ratchet's input: a member secret follows."""
STEP_WELCOME = b"\x02"
"""A ratchet's whole input when a newcomer's first ratchet is made."""
STEP_ADD = b"\x03"
"""A ratchet's whole input when an addition is acknowledged."""

_LENGTH = struct.Struct(">I")


def fields(*parts: bytes) -> bytes:
    """Join these byte strings, each after its length, so that no two lists collide."""
    return b"".join(_LENGTH.pack(len(part)) + part for part in parts)


def u32(number: int) -> bytes:
    """Return a number as four bytes, big-endian, as all numbers are here."""
    return _LENGTH.pack(number)


MemberId = NewType("MemberId", bytes)
"""16 bytes, unique per addition: a device that is added again is another member, with other keys."""


class Device(NamedTuple):
    """A device of a person, as the events that it signs name it."""

    author: AuthorId
    device: DeviceId
