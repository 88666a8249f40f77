"""Announcements: how the owner tells readers the key of an epoch, in events of kind ``group`` of its chain.

::

    version u8 · type u8 · epoch u32 · before u64 · identity 32 · readers u16
    for each reader: person 32 · device 8 · direct message

Type 16 begins an epoch and names all who read it; type 17 tells the present one to those let in since.
`before` is the number of the announcement before, so that they can be gone through backwards; for the
first it is all ones. `identity` is the owner's key for two-party channels, which the event's signature
makes the owner's. A reader's direct message holds the epoch's key (`linnet.groups.two_party`).
"""

from __future__ import annotations

import struct
from enum import IntEnum

from msgspec import Struct

from linnet.core.errors import MalformedMessage
from linnet.core.ids import AuthorId, DeviceId
from linnet.core.reasons import Reason
from linnet.groups.ids import Device
from linnet.groups.primitives import KEY_BYTES, check_public
from linnet.groups.reading import Reader, rising

KIND = "group"
"""The kind of the events that carry announcements."""
MOST_READERS = 1_024
"""Devices that one stream's owner may let in: so many direct messages fit one event."""

_VERSION = 1
_HEAD = struct.Struct(">BBIQ32sH")
_NONE_BEFORE = 2**64 - 1
_PERSON_BYTES, _DEVICE_BYTES = 32, 8


class Sort(IntEnum):
    """What an announcement does. Operations of rooms' groups have the numbers below."""

    EPOCH = 16
    ADMIT = 17


class Announcement(Struct, frozen=True):
    """The key of an epoch, for each reader."""

    sort: Sort
    epoch: int
    before: int | None
    """Number of the event with the announcement before this one."""
    identity: bytes
    messages: dict[Device, bytes]
    """A direct message for each reader."""


def encode_announcement(announcement: Announcement) -> bytes:
    """The body of the event."""
    messages = sorted(announcement.messages.items())
    before = _NONE_BEFORE if announcement.before is None else announcement.before
    head = _HEAD.pack(
        _VERSION, announcement.sort, announcement.epoch, before, announcement.identity, len(messages)
    )
    return head + b"".join(reader.author + reader.device + message for reader, message in messages)


def decode_announcement(body: bytes) -> Announcement:
    """What an event of the owner's announces; `MalformedMessage` if that is nothing of ours."""
    reader = Reader(body)
    version, sort, epoch, before, identity, count = _HEAD.unpack(reader.take(_HEAD.size))
    if version != _VERSION:
        raise MalformedMessage(f"an announcement of version {version}", Reason.UNSUPPORTED)
    if sort not in (Sort.EPOCH, Sort.ADMIT):
        raise MalformedMessage(f"an announcement of type {sort}", Reason.UNSUPPORTED)
    if count > MOST_READERS or not epoch:
        raise MalformedMessage("an announcement to too many readers, or of no epoch", Reason.TOO_MANY)
    check_public(identity)
    messages: dict[Device, bytes] = {}
    order: list[bytes] = []
    for _ in range(count):
        author, device = reader.take(_PERSON_BYTES), reader.take(_DEVICE_BYTES)
        order.append(author + device)
        messages[Device(AuthorId(author), DeviceId(device))] = reader.direct(KEY_BYTES)
    reader.end()
    rising(tuple(order), "the readers of an announcement")
    return Announcement(Sort(sort), epoch, None if before == _NONE_BEFORE else before, identity, messages)
